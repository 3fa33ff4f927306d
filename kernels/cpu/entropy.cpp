#include "tern/kernels/entropy.h"

#include <algorithm>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/entropy_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using kernels::PackedTensor;

/// Calls body(i) for each tensor of a message, on several threads.
template <class Body>
void for_each_tensor(std::span<const PackedTensor> message, Body body) {
  parallel_for(0, std::ssize(message), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (message[static_cast<size_t>(i)].numel != 0) body(static_cast<size_t>(i));
  });
}

/// code_of(codes, numel, levels) is the code of a tensor.
template <class CodeOf>
void pack(std::span<const PackedTensor> message, int64_t levels, Tensor& bytes, Tensor& lengths, CodeOf code_of) {
  std::vector<std::vector<uint8_t>> coded(message.size());
  for_each_tensor(message,
                  [&](size_t i) { coded[i] = code_of(message[i].codes.data<uint8_t>(), message[i].numel, levels); });
  uint8_t* next = bytes.data<uint8_t>();
  for (size_t i = 0; i < message.size(); ++i) {
    uint8_t* const begin = next;
    next = std::ranges::copy(message[i].prefix.span<uint8_t>(), next).out;
    next = std::ranges::copy(coded[i], next).out;
    lengths.data<int64_t>()[i] = next - begin;
  }
}

/// read(code, numel, levels, codes) writes the codes of a tensor.
template <class Read>
void unpack(std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
            std::span<const int64_t> lengths, Read read) {
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
    read(parts[i].subspan(before), numel, levels, codes.data<uint8_t>());
  });
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
  kernels::entropy_pack.provide(Target::cpu, entropy_pack);
  kernels::entropy_unpack.provide(Target::cpu, entropy_unpack);
  kernels::elias_pack.provide(Target::cpu, elias_pack);
  kernels::elias_unpack.provide(Target::cpu, elias_unpack);
}

}  // namespace tern::cpu
