#pragma once

#include "tests/support/parity.h"

// The cases every target is held to, by family. A new case is one line in its family's table.

namespace tern::test {

void add_elementwise_cases(ParityTable& table);
void add_reduction_cases(ParityTable& table);
void add_matmul_cases(ParityTable& table);
void add_convolution_cases(ParityTable& table);
void add_pooling_cases(ParityTable& table);
void add_normalization_cases(ParityTable& table);
void add_loss_cases(ParityTable& table);
void add_layout_cases(ParityTable& table);
void add_update_cases(ParityTable& table);
void add_codec_cases(ParityTable& table);

/// All of them.
const ParityTable& parity_table();

}  // namespace tern::test
