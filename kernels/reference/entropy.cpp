#include "tern/kernels/entropy.h"

#include <algorithm>

#include "tern/kernels/entropy_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using kernels::PackedTensor, kernels::PlaneCode;

template <const PlaneCode& Code>
void pack(std::span<const PackedTensor> message, int64_t levels, Tensor& bytes, Tensor& lengths) {
  kernels::check_packing(Code.pack, message, levels, bytes, lengths, Code.most_bytes);
  auto* const first = bytes.data<uint8_t>();
  uint8_t* next = first;
  for (size_t i = 0; i < message.size(); ++i) {
    const auto& [numel, codes, prefix] = message[i];
    uint8_t* const begin = next;
    if (numel != 0) {
      next = std::ranges::copy(prefix.span<uint8_t>(), next).out;
      next = std::ranges::copy(Code.make(codes.data<uint8_t>(), numel, levels), next).out;
    }
    lengths.data<int64_t>()[i] = next - begin;
  }
}

template <const PlaneCode& Code>
void unpack(std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
            std::span<const int64_t> lengths) {
  kernels::check_unpacking(Code.unpack, message, levels, bytes, lengths);
  std::span<const uint8_t> rest = bytes.span<uint8_t>();
  for (size_t i = 0; i < message.size(); ++i) {
    const auto& [numel, codes, prefix] = message[i];
    const auto before = static_cast<size_t>(prefix.numel()), all = static_cast<size_t>(lengths[i]);
    std::ranges::copy(rest.first(before), prefix.data<uint8_t>());
    if (numel != 0) Code.read(rest.subspan(before, all - before), numel, levels, codes.data<uint8_t>());
    rest = rest.subspan(all);
  }
}

}  // namespace

void provide_entropy() {
  kernels::entropy_pack.provide(Target::reference, pack<kernels::kEntropyCode>);
  kernels::entropy_unpack.provide(Target::reference, unpack<kernels::kEntropyCode>);
  kernels::elias_pack.provide(Target::reference, pack<kernels::kEliasCode>);
  kernels::elias_unpack.provide(Target::reference, unpack<kernels::kEliasCode>);
}

}  // namespace tern::reference
