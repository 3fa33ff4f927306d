#pragma once

#include <vector>

#include "tern/dist/comm/communicator.h"

namespace tern::test {

// What every communicator does, as one of its ranks sees it. The tensors are on `device`. All ranks call the same
// function.

/// Calls every operation on tensors of 0 to 100,003 elements, and compares the results with closed forms.
void check_closed_forms(Communicator& c, Device device);
/// The sum of thirds, fifths and other numbers that no float holds, so that its last bits depend on the order.
std::vector<float> rounded_sums(Communicator& c, int64_t count, Device device);
void check_dtypes(Communicator& c, Device device);
/// Compares the payload of each operation with the formula of its documentation.
void check_payload(Communicator& c, Device device);
void check_writes(Communicator& c, Device device);

}  // namespace tern::test
