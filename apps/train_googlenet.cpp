#include "tern/networks/googlenet.h"

// Trains GoogLeNet as TernGrad does (Wen et al., 2017, Table 3), or BN-Inception. By default it trains on generated
// shapes of 224×224. For your own pictures: `train_googlenet --data images --data-dir DIR`.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::googlenet().application()); }
