#include "tern/kernels/entropy.h"

#include <algorithm>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/entropy_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using kernels::PackedTensor, kernels::PlaneCode;

/// Calls body(i) for each tensor of a message, on several threads.
template <class Body>
void for_each_tensor(std::span<const PackedTensor> message, Body body) {
  parallel_for(0, std::ssize(message), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (message[static_cast<size_t>(i)].numel != 0) body(static_cast<size_t>(i));
  });
}

template <const PlaneCode& Code>
void pack(std::span<const PackedTensor> message, int64_t levels, Tensor& bytes, Tensor& lengths) {
  kernels::check_packing(Code.pack, message, levels, bytes, lengths, Code.most_bytes);
  std::vector<std::vector<uint8_t>> coded(message.size());
  for_each_tensor(message,
                  [&](size_t i) { coded[i] = Code.make(message[i].codes.data<uint8_t>(), message[i].numel, levels); });
  uint8_t* next = bytes.data<uint8_t>();
  for (size_t i = 0; i < message.size(); ++i) {
    uint8_t* const begin = next;
    next = std::ranges::copy(message[i].prefix.span<uint8_t>(), next).out;
    next = std::ranges::copy(coded[i], next).out;
    lengths.data<int64_t>()[i] = next - begin;
  }
}

template <const PlaneCode& Code>
void unpack(std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
            std::span<const int64_t> lengths) {
  kernels::check_unpacking(Code.unpack, message, levels, bytes, lengths);
  std::vector<std::span<const uint8_t>> parts;
  std::span<const uint8_t> rest = bytes.span<uint8_t>();
  for (const int64_t length : lengths) {
    parts.push_back(rest.first(static_cast<size_t>(length)));
    rest = rest.subspan(static_cast<size_t>(length));
  }
  for_each_tensor(message, [&](size_t i) {
    const auto& [numel, codes, prefix] = message[i];
    const auto before = static_cast<size_t>(prefix.numel());
    std::ranges::copy(parts[i].first(before), prefix.data<uint8_t>());
    Code.read(parts[i].subspan(before), numel, levels, codes.data<uint8_t>());
  });
}

}  // namespace

void provide_entropy() {
  kernels::entropy_pack.provide(Target::cpu, pack<kernels::kEntropyCode>);
  kernels::entropy_unpack.provide(Target::cpu, unpack<kernels::kEntropyCode>);
  kernels::elias_pack.provide(Target::cpu, pack<kernels::kEliasCode>);
  kernels::elias_unpack.provide(Target::cpu, unpack<kernels::kEliasCode>);
}

}  // namespace tern::cpu
