#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tern/core/dtype.h"

namespace tern {

using Clock = std::chrono::steady_clock;

/// What a communicator does; a number on the wire: append, never reorder.
enum class Operation : uint8_t {
  none,
  broadcast,
  all_reduce_sum,
  all_reduce_max,
  reduce_scatter,
  all_gather,
  all_to_all,
  scatter,
  gather,
  barrier,
  shift,
  fan_out,
  last = fan_out
};

std::string to_string(Operation operation);

/// Whose bytes they are in the ledger: those that the training method is about, or those that come on top.
enum class Account : uint8_t { payload, overhead };

/// What both ends of a message know of it, and must agree on.
struct Message {
  uint32_t sequence = 0;  ///< number of the operation on this communicator, from 1
  Operation operation = Operation::none;
  DType dtype = DType::u8;
  uint64_t count = 0;  ///< elements of the operation, of which this message may carry a piece
  Account account = Account::payload;
};

/// "all_reduce_sum 7 of 1000 f32"
std::string to_string(const Message& message);

/// Whether two ends speak of the same operation on the same kind and number of elements.
bool agree(const Message& a, const Message& b);

}  // namespace tern
