#include "tern/networks/cifarnet.h"

// Trains CifarNet as TernGrad does (Wen et al., 2017, Table 1): `train_cifarnet --data cifar10 --data-dir DIR`, or on
// generated shapes, which need no file. `--iterations 2000 --ema-decay 0` is a short run.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::cifarnet().application()); }
