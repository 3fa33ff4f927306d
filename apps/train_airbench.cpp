#include "tern/networks/airbench.h"

// Trains airbench94 (Jordan, 2024) in 200 steps: `train_airbench --data cifar10 --data-dir DIR`.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::airbench().application()); }
