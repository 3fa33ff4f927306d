#include "tern/networks/resnet.h"

// Trains a residual network as He et al. (2016, section 4.2) do: `train_resnet --data cifar10 --data-dir DIR`, or on
// drawn shapes with no file, where the loss of 20 layers stays at chance for some 500 steps of 64 before it falls.
// Section 3.4's networks for ImageNet take `--data images --data-dir DIR --stem imagenet --depth 18`.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::resnet().application()); }
