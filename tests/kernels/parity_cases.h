#pragma once

#include "tests/support/parity.h"

// The cases that every target must pass, one table per family. A new case is one line in the table of its family.

namespace tern::test {

void add_elementwise_cases(ParityTable& table);
void add_reduction_cases(ParityTable& table);
void add_matmul_cases(ParityTable& table);
void add_convolution_cases(ParityTable& table);
void add_pooling_cases(ParityTable& table);
void add_normalization_cases(ParityTable& table);
void add_loss_cases(ParityTable& table);
void add_softmax_chunk_cases(ParityTable& table);
void add_embedding_cases(ParityTable& table);
void add_sequence_cases(ParityTable& table);
void add_layout_cases(ParityTable& table);
void add_update_cases(ParityTable& table);
void add_codec_cases(ParityTable& table);

/// The cases of all families.
const ParityTable& parity_table();

}  // namespace tern::test
