#include "tern/networks/lenet.h"

// Trains LeNet on handwritten digits: `train_lenet --data mnist --data-dir DIR`, or on drawn digits with no file.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::lenet().application()); }
