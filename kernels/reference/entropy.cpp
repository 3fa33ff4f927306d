#include "tern/kernels/entropy.h"

#include <algorithm>

#include "tern/kernels/entropy_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using kernels::PackedTensor;

/// code_of(codes, numel, levels) is the code of a tensor.
template <class CodeOf>
void pack(std::span<const PackedTensor> message, int64_t levels, Tensor& bytes, Tensor& lengths, CodeOf code_of) {
  auto* const first = bytes.data<uint8_t>();
  uint8_t* next = first;
  for (size_t i = 0; i < message.size(); ++i) {
    const auto& [numel, codes, prefix] = message[i];
    uint8_t* const begin = next;
    if (numel != 0) {
      next = std::ranges::copy(prefix.span<uint8_t>(), next).out;
      next = std::ranges::copy(code_of(codes.data<uint8_t>(), numel, levels), next).out;
    }
    lengths.data<int64_t>()[i] = next - begin;
  }
}

/// read(code, numel, levels, codes) writes the codes of a tensor.
template <class Read>
void unpack(std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
            std::span<const int64_t> lengths, Read read) {
  std::span<const uint8_t> rest = bytes.span<uint8_t>();
  for (size_t i = 0; i < message.size(); ++i) {
    const auto& [numel, codes, prefix] = message[i];
    const auto before = static_cast<size_t>(prefix.numel()), all = static_cast<size_t>(lengths[i]);
    std::ranges::copy(rest.first(before), prefix.data<uint8_t>());
    if (numel != 0) read(rest.subspan(before, all - before), numel, levels, codes.data<uint8_t>());
    rest = rest.subspan(all);
  }
}

void entropy_pack(std::span<const PackedTensor> message, int64_t levels, Tensor& bytes, Tensor& lengths) {
  kernels::check_packing("entropy_pack", message, levels, bytes, lengths, kernels::most_entropy_bytes);
  pack(message, levels, bytes, lengths, kernels::entropy_code);
}
void entropy_unpack(std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
                    std::span<const int64_t> lengths) {
  kernels::check_unpacking("entropy_unpack", message, levels, bytes, lengths);
  unpack(message, levels, bytes, lengths, kernels::read_entropy_code);
}

void elias_pack(std::span<const PackedTensor> message, int64_t levels, Tensor& bytes, Tensor& lengths) {
  kernels::check_packing("elias_pack", message, levels, bytes, lengths, kernels::most_elias_bytes);
  pack(message, levels, bytes, lengths, kernels::elias_code);
}
void elias_unpack(std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
                  std::span<const int64_t> lengths) {
  kernels::check_unpacking("elias_unpack", message, levels, bytes, lengths);
  unpack(message, levels, bytes, lengths, kernels::read_elias_code);
}

}  // namespace

void provide_entropy() {
  kernels::entropy_pack.provide(Target::reference, entropy_pack);
  kernels::entropy_unpack.provide(Target::reference, entropy_unpack);
  kernels::elias_pack.provide(Target::reference, elias_pack);
  kernels::elias_unpack.provide(Target::reference, elias_unpack);
}

}  // namespace tern::reference
