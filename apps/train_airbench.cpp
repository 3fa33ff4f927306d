#include "tern/networks/airbench.h"

// Trains airbench94 (Jordan, 2024): `train_airbench --data cifar10 --data-dir DIR` reaches 94 % in 200 steps.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::airbench().application()); }
