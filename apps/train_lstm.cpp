#include "tern/networks/lstm.h"

// Trains QSGD's LSTM on AN4, speech as phones: `train_lstm --data-dir DIR`, where DIR holds the corpus or its archive.

int main(int argc, char** argv) { return tern::train(argc, argv, tern::networks::lstm().application()); }
