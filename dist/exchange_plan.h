#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tern/core/shape.h"
#include "tern/dist/codec.h"
#include "tern/dist/wire.h"

namespace tern {

/// A tensor of a message, and the bytes that a codec makes of it.
struct CodedTensor {
  Shape shape;
  int64_t bytes = 0;
};
/// The codec's messages have their size, or where that varies the most.
std::vector<CodedTensor> coded_tensors(const GradientCodec& codec, std::span<const Shape> shapes);

int64_t elements_of(std::span<const CodedTensor> message);

/// A part of an exchange: elements are coded, then bytes travel, then elements are read. Counts are those of the rank
/// that the others wait for.
struct ExchangePhase {
  double encoded = 0;
  WireLoad wire = {};
  double decoded = 0;
  bool payload = true;  ///< else its bytes are on the overhead account
};

/// What the ranks do with one message, without doing it.
struct ExchangePlan {
  std::vector<ExchangePhase> phases;
  size_t under_way = 0;  ///< the phase whose bytes travel when `Exchange::start` returns

  double encoded() const;
  double decoded() const;
  /// Payload that all ranks send together, bytes.
  int64_t sent() const;
};

/// Of the exchange of this name, on `ranks` ranks of which there may be any number. Errors are `check_exchange`'s.
ExchangePlan plan_exchange(std::string_view exchange, const GradientCodec& codec, std::span<const CodedTensor> message,
                           int ranks);

}  // namespace tern
