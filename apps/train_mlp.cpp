#include "tern/networks/mlp.h"

// Trains a perceptron with one or two hidden layers: 784-h-10 on handwritten or generated digits, or 4096-h-35 on
// generated melodies with `train_mlp --data tones --hidden 4096`.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::mlp().application()); }
