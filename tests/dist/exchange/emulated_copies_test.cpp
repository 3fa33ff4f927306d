#include <gtest/gtest.h>
#include <host_copies.h>

#include <algorithm>
#include <iostream>

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
                               "error-feedback:topk",
                               "error-feedback:randk",
                               "error-feedback:topk-block",
                               "error-feedback:hadamard"};

/// Parts of the specs of codes that the CPU makes.
const char* const kOnCpu[] = {"elias", "align=field", "topk:", "randk"};

bool is_on_cpu(const std::string& codec) {
  return std::ranges::any_of(kOnCpu, [&](const char* part) { return (codec + ":").find(part) != std::string::npos; });
}

/// The bytes that one exchange of both ranks copies between host and devices, in its second step.
emulation::HostCopies copied(const std::string& exchange, const std::string& codec, const std::vector<Shape>& shapes) {
  emulation::HostCopies before{}, after{};
  const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
    const Device device{DeviceType::cuda, c.rank()};
    const auto coder = make_codec(codec);
    const auto way = make_exchange(exchange, *coder, c);
    const auto read = [&](emulation::HostCopies& to) {
      c.barrier().wait();
      if (c.rank() == 0) to = emulation::host_copies();
      c.barrier().wait();
    };
    for (const uint32_t step : {0u, 1u}) {
      const FusedGradients message = on_device(gradients_of(c.rank(), shapes, step), device);
      read(before);
      way->start(message)();
      device_backend(device).synchronize();
      read(after);
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2)) << exchange << " " << codec;
  return {after.to_device - before.to_device, after.to_host - before.to_host};
}

// With NCCL nothing but the lengths of entropy codes reaches the host, 8 bytes for each tensor, unless codes are made
// there.
TEST(EmulatedCopies, OfEachCodecInEachExchangeAreAsStated) {
  const std::vector<Shape> shapes = {{500}, {20, 1, 5, 5}, {33}};
  int pairs = 0;
  for (const std::string& exchange : exchange_names())
    for (const char* codec : kCodecs) {
      try {
        check_exchange(exchange, *make_codec(codec));
      } catch (const InputError&) {
        continue;
      }
      ++pairs;
      const auto [to_device, to_host] = copied(exchange, codec, shapes);
      std::cout << exchange << " " << codec << ": " << to_device << " bytes to devices, " << to_host
                << " to the host\n";
      const uint64_t lengths =
          make_codec(codec)->traits().fixed_size ? 0 : 2 * shapes.size() * sizeof(int64_t);  // of two ranks
      if (is_on_cpu(codec)) {
        EXPECT_GT(to_host, lengths) << exchange << " " << codec;
      } else {
        EXPECT_EQ(to_device, 0u) << exchange << " " << codec;
        EXPECT_EQ(to_host, lengths) << exchange << " " << codec;
      }
    }
  EXPECT_GT(pairs, 70);
}

}  // namespace
}  // namespace tern::test
