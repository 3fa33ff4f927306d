#include "tern/networks/lenet.h"

// Trains LeNet on handwritten digits: `train_lenet --data mnist --data-dir DIR`. By default it generates the digits.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::lenet().application()); }
