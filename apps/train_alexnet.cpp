#include "tern/networks/alexnet.h"

// Trains AlexNet as TernGrad does (Wen et al., 2017, Table 2). By default it trains on generated shapes of 224×224. For
// your own pictures: `train_alexnet --data images --data-dir DIR`.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::alexnet().application()); }
