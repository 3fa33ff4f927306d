#include "tern/networks/alexnet.h"

// Trains AlexNet as TernGrad does (Wen et al., 2017, Table 2), here on drawn shapes of 224×224, or on pictures of your
// own: `train_alexnet --data images --data-dir DIR`.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::alexnet().application()); }
