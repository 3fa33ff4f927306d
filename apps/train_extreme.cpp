#include "tern/networks/extreme.h"

// Trains a network with one hidden layer on sparse features with several of very many labels: drawn ones, or the files
// of the extreme classification repository with `train_extreme --data extreme-file --data-dir FOLDER`.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::extreme().application()); }
