#include "tern/networks/vgg.h"

// Trains a VGG network (Simonyan and Zisserman, 2015). By default it trains on generated shapes of 224×224. For your
// own pictures: `train_vgg --data images --data-dir DIR --depth 16`. For CIFAR-10:
//
//   train_vgg --stem cifar --data cifar10 --data-dir DIR --batch-size 128

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::vgg().application()); }
