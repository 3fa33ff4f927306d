#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tern {

/// A tensor that ranks average, step after step; the same list on all ranks.
struct AveragedTensor {
  std::string name;
  int64_t elements = 0;
  bool coded = true;  ///< false: travels as floats whatever the options say
};

/// Which tensors travel as floats where the others are coded, and which travel together.
struct FusionOptions {
  int64_t min_compress = 0;                 ///< tensors of fewer elements travel as floats
  std::string keep_float = {};              ///< and those whose names match this: * and ? as in a shell
  int64_t fusion_bytes = int64_t{1} << 20;  ///< of floats: a message that has as many is full
};

/// Tensors of one message, by their place in the list.
struct FusedMessage {
  std::vector<size_t> members;
  bool coded = true;
};

/// Cuts a list into messages, from its end to its beginning, as backward produces gradients. An InputError where
/// `keep_float` matches no tensor.
std::vector<FusedMessage> fuse(const std::vector<AveragedTensor>& tensors, const FusionOptions& options);

}  // namespace tern
