#include <gtest/gtest.h>
#include <host_copies.h>

#include "tests/dist/comm/nccl.h"
#include "tests/dist/exchange/exchange_support.h"

namespace tern::test {
namespace {

/// Each codec with its options.
const char* const kCodecs[] = {"none",
                               "fp16",
                               "bf16",
                               "ternary",
                               "ternary:bucket=160,share=on,clip-mode=own",
                               "ternary:pack=5trit",
                               "ternary:pack=5trit,bucket=160,share=off,clip-mode=reference",
                               "ternary:pack=entropy",
                               "qsgd",
                               "qsgd:bits=8,bucket=0,norm=l2",
                               "qsgd:code=elias",
                               "qsgd:code=entropy",
                               "qsgd:align=field",
                               "qsgd:code=entropy,align=field",
                               "qsgd:code=elias,align=field",
                               "onebit",
                               "topk",
                               "randk",
                               "topk-block",
                               "topk-block:decay=0.9",
                               "hadamard",
                               "error-feedback:bf16",
                               "error-feedback:ternary",
                               "error-feedback:ternary:pack=5trit",
                               "error-feedback:ternary:pack=entropy",
                               "error-feedback:qsgd",
                               "error-feedback:qsgd:code=entropy",
                               "error-feedback:qsgd:code=elias",
                               "error-feedback:qsgd:align=field",
                               "error-feedback:topk",
                               "error-feedback:randk",
                               "error-feedback:topk-block",
                               "error-feedback:hadamard"};

struct Pair {
  std::string exchange, codec;
  emulation::HostCopies copied = {};  ///< by both ranks, in their second step
};
std::vector<Pair> allowed_pairs() {
  std::vector<Pair> pairs;
  for (const std::string& exchange : exchange_names())
    for (const char* codec : kCodecs) {
      try {
        check_exchange(exchange, *make_codec(codec));
        pairs.push_back({exchange, codec});
      } catch (const InputError&) {
      }
    }
  return pairs;
}

void count_copies(Communicator& c, const std::vector<Shape>& shapes, Pair& pair) {
  const Device device{DeviceType::cuda, c.rank()};
  const auto codec = make_codec(pair.codec);
  const auto exchange = make_exchange(pair.exchange, *codec, c);
  for (const uint32_t step : {0u, 1u}) {
    const FusedGradients message = on_device(gradients_of(c.rank(), shapes, step), device);
    c.barrier().wait();
    const emulation::HostCopies before = emulation::host_copies();
    c.barrier().wait();
    exchange->start(message)();
    device_backend(device).synchronize();
    c.barrier().wait();
    const emulation::HostCopies after = emulation::host_copies();
    if (c.rank() == 0) pair.copied = {after.to_device - before.to_device, after.to_host - before.to_host};
    c.barrier().wait();
  }
}

// With NCCL nothing but the lengths of codes of varying size reaches the host, 8 bytes for each tensor.
TEST(EmulatedCopies, OfEachCodecInEachExchangeAreAsStated) {
  const std::vector<Shape> shapes = {{500}, {20, 1, 5, 5}, {33}};
  std::vector<Pair> pairs = allowed_pairs();
  EXPECT_GT(pairs.size(), 70u);
  const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
    for (Pair& pair : pairs) count_copies(c, shapes, pair);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  for (const auto& [exchange, codec, copied] : pairs) {
    SCOPED_TRACE(exchange + " " + codec);
    const bool fixed = make_codec(codec)->traits().fixed_size;
    const uint64_t lengths = fixed ? 0 : 2 * shapes.size() * sizeof(int64_t);  // of two ranks
    EXPECT_EQ(copied.to_device, 0u);
    EXPECT_EQ(copied.to_host, lengths);
  }
}

}  // namespace
}  // namespace tern::test
