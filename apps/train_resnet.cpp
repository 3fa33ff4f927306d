#include "tern/networks/resnet.h"

// Trains a residual network as He et al. (2016, section 4.2) do: `train_resnet --data cifar10 --data-dir DIR`, or on
// generated shapes, which need no file. On these, the loss of 20 layers stays at chance for about 500 steps of 64
// images, and then falls. For section 3.4's networks for ImageNet use `--data images --data-dir DIR --stem imagenet
// --depth 18`.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::resnet().application()); }
