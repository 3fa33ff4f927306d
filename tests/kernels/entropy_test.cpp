#include "tern/kernels/entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/random.h"
#include "tern/kernels/recording.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using namespace kernels;

/// The bit planes of `n` levels within ±levels. This share of them is not zero.
Tensor planes(int64_t n, int64_t levels, double nonzero) {
  const RandomStream stream({.seed = 3, .purpose = Purpose::test});
  Tensor x = Tensor::zeros({n}), codes = Tensor::empty({code_bytes(n, code_bits(levels))}, {.dtype = DType::u8});
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<uint64_t>(2 * i);
    const auto level = 1 + stream.below(at, static_cast<uint32_t>(levels));
    if (stream.uniform(at + 1) < nonzero) x.data<float>()[i] = static_cast<float>(level) * (i % 2 == 0 ? 1.0f : -1.0f);
  }
  const CodedGradient coded = {x, Tensor::full({bucket_count(n, 0)}, 1), codes, {}};
  quantize.on(Target::reference)({&coded, 1}, 0, levels);
  return codes;
}

std::vector<uint8_t> packed_on(Target target, const Tensor& codes, int64_t n, int64_t levels) {
  const PackedTensor tensor = {n, codes, Tensor::empty({0}, {.dtype = DType::u8})};
  Tensor bytes = Tensor::empty({most_entropy_bytes(n, levels)}, {.dtype = DType::u8});
  Tensor length = Tensor::empty({1}, {.dtype = DType::i64});
  entropy_pack.on(target)({&tensor, 1}, levels, bytes, length);
  return bytes.slice(0, length.to_vector<int64_t>()[0]).to_vector<uint8_t>();
}

/// Where the byte after the table of a rANS code is.
size_t table_end(const std::vector<uint8_t>& code) {
  size_t at = 3;
  for (int left = code[1] | code[2] << 8; left > 0; ++at) left -= code[at] < 0x80 ? 1 : 0;
  return at;
}

TEST(Entropy, ChoosesTheShortestPackingAndBlocks) {
  struct {
    int64_t n, levels;
    double nonzero;
    EntropyPacking packing;
    int block_bits = 0;
  } const cases[] = {
      {1, 1, 1, EntropyPacking::elias},
      {1023, 7, 0.01, EntropyPacking::elias},
      {300, 7, 1, EntropyPacking::planes},
      {1023, 1, 0.5, EntropyPacking::rans},
      {5000, 1, 0.1, EntropyPacking::rans},
      {70'001, 1, 0.01, EntropyPacking::rans, 0},
      {100'000, 7, 0.95, EntropyPacking::rans, 16},
      {300'007, 1, 0.5, EntropyPacking::rans, 18},
  };
  for (const auto& [n, levels, nonzero, packing, block_bits] : cases)
    for (const Target target : {Target::reference, Target::cpu}) {
      const auto code = packed_on(target, planes(n, levels, nonzero), n, levels);
      EXPECT_EQ(code[0], static_cast<uint8_t>(packing)) << n << " elements, " << levels;
      if (packing == EntropyPacking::rans && n >= 65'536) {
        EXPECT_EQ(code[table_end(code)], block_bits) << n << " elements";
      }
    }
}

TEST(Entropy, RefusesCodesThatAreNotValid) {
  constexpr int64_t kElements = 5000, kLevels = 7;
  const auto code = packed_on(Target::cpu, planes(kElements, kLevels, 0.3), kElements, kLevels);
  ASSERT_EQ(code[0], static_cast<uint8_t>(EntropyPacking::rans));
  const auto refusal = [&](const auto& damage) {
    auto damaged = code;
    damage(damaged);
    const PackedTensor tensor = {kElements, planes(kElements, kLevels, 0), Tensor::empty({0}, {.dtype = DType::u8})};
    const int64_t length = std::ssize(damaged);
    return message_of<Error>([&] {
      entropy_unpack.on(Target::cpu)({&tensor, 1}, kLevels, Tensor::from({length}, damaged), {&length, 1});
    });
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_NE(refusal([](auto& bytes) { bytes[0] = 3; }).find("packing 3"), std::string::npos);
  EXPECT_NE(refusal([](auto& bytes) { bytes[0] = 0; }).find("planes have"), std::string::npos);
  EXPECT_NE(refusal([](auto& bytes) { bytes[1] = 16; }).find("16 symbols"), std::string::npos);
  EXPECT_NE(refusal([](auto& bytes) { ++bytes[4]; }).find("add up to"), std::string::npos);
  EXPECT_NE(refusal([](auto& bytes) { bytes.resize(bytes.size() - 4); }).find("ends early"), std::string::npos);
  EXPECT_NE(refusal([](auto& bytes) { bytes.push_back(0); }).find("goes on after"), std::string::npos);
  EXPECT_NE(refusal([](auto& bytes) { ++bytes.back(); }).find("states that it began with"), std::string::npos);
}

TEST(Entropy, RefusesEliasCodesThatEndEarly) {
  constexpr int64_t kElements = 3000, kLevels = 7;
  for (const double nonzero : {0.02, 1.0}) {  // sparse, dense
    const Tensor codes = planes(kElements, kLevels, nonzero);
    const PackedTensor tensor = {kElements, codes, Tensor::empty({0}, {.dtype = DType::u8})};
    Tensor bytes = Tensor::empty({most_elias_bytes(kElements, kLevels)}, {.dtype = DType::u8});
    Tensor length = Tensor::empty({1}, {.dtype = DType::i64});
    elias_pack.on(Target::cpu)({&tensor, 1}, kLevels, bytes, length);
    const int64_t all = length.to_vector<int64_t>()[0];
    EXPECT_EQ(bytes.to_vector<uint8_t>()[0] >> 7, nonzero == 1 ? 1 : 0);
    const auto unpack = [&](int64_t count) {
      elias_unpack.on(Target::cpu)({&tensor, 1}, kLevels, bytes.slice(0, count), {&count, 1});
    };
    EXPECT_EQ(message_of<Error>([&] { unpack(all); }), "");
    EXPECT_NE(message_of<Error>([&] { unpack(all - 1); }).find("elias_unpack: a code ends early"), std::string::npos);
  }
}

/// Codes that are cut or have other bytes give something, but only to their tensor.
TEST(CudaEntropy, CodesThatAreNotValidChangeNothingElse) {
  if (const auto reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr Device kCuda{DeviceType::cuda, 0};
  constexpr int64_t kElements = 9001, kLevels = 7, kBeside = 64;
  constexpr uint8_t kBefore = 0xa5;
  const RandomStream stream({.seed = 5, .purpose = Purpose::test});
  const int64_t count = code_bytes(kElements, code_bits(kLevels));
  uint64_t draw = 0;
  for (const auto& [pack, unpack] : {std::pair{&entropy_pack, &entropy_unpack}, {&elias_pack, &elias_unpack}})
    for (const double nonzero : {0.02, 1.0}) {
      const PackedTensor tensor = {kElements, planes(kElements, kLevels, nonzero),
                                   Tensor::empty({0}, {.dtype = DType::u8})};
      Tensor bytes = Tensor::empty({most_elias_bytes(kElements, kLevels)}, {.dtype = DType::u8});
      Tensor length = Tensor::empty({1}, {.dtype = DType::i64});
      pack->on(Target::cpu)({&tensor, 1}, kLevels, bytes, length);
      const auto code = bytes.slice(0, length.to_vector<int64_t>()[0]).to_vector<uint8_t>();
      for (int round = 0; round < 6; ++round) {
        auto damaged = code;
        if (round % 2 == 1) damaged.resize(1 + stream.below(draw++, static_cast<uint32_t>(code.size())));
        for (size_t i = round < 4 ? 3 : 0; i < damaged.size(); i += 1 + stream.below(draw++, 60))
          damaged[i] = static_cast<uint8_t>(stream.below(draw++, 256));
        const Tensor memory = Tensor::full({kBeside + count + kBeside}, kBefore, {.dtype = DType::u8}).to(kCuda);
        const PackedTensor unpacked = {kElements, memory.slice(kBeside, kBeside + count), memory.slice(0, 0)};
        const int64_t all = std::ssize(damaged);
        (*unpack)({&unpacked, 1}, kLevels, Tensor::from({all}, damaged).to(kCuda), {&all, 1});
        for (const int64_t begin : {int64_t{0}, kBeside + count})
          EXPECT_EQ(memory.slice(begin, begin + kBeside).to_vector<uint8_t>(), std::vector<uint8_t>(kBeside, kBefore));
      }
    }
}

/// Longer codes take one more launch to be read.
TEST(CudaEntropy, EliasCodesOfSeveralTensorsTakeAFewLaunches) {
  if (const auto reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr Device kCuda{DeviceType::cuda, 0};
  constexpr int64_t kLevels = 7;
  for (const auto& [elements, expected] : {std::pair<int64_t, size_t>{500, 5}, {24'000, 6}}) {
    const Tensor codes = planes(elements, kLevels, 1).to(kCuda);
    const std::vector<PackedTensor> message(2, {elements, codes, codes.slice(0, 0)});
    Tensor bytes = Tensor::empty({2 * most_elias_bytes(elements, kLevels)}, {.dtype = DType::u8, .device = kCuda});
    Tensor lengths = Tensor::empty({2}, {.dtype = DType::i64, .device = kCuda});
    const auto pack = [&] { elias_pack(message, kLevels, bytes, lengths); };
    pack();
    const auto found = lengths.to_vector<int64_t>();
    EXPECT_EQ(record(kCuda, pack)->launches(), 4u);
    const auto unpack = [&] { elias_unpack(message, kLevels, bytes.slice(0, 2 * found[0]), found); };
    unpack();
    EXPECT_EQ(record(kCuda, unpack)->launches(), expected);
  }
}

/// A code of these bits.
std::vector<uint8_t> elias_code_of(const std::string& bits) {
  std::vector<uint8_t> code = {static_cast<uint8_t>(EntropyPacking::elias)};
  for (size_t i = 0; i < bits.size(); ++i) {
    if (i % 8 == 0) code.push_back(0);
    code.back() = static_cast<uint8_t>(code.back() | (bits[i] - '0') << (7 - i % 8));
  }
  return code;
}

TEST(Entropy, RefusesEliasCodesOfWrongElementsAndLevels) {
  constexpr int64_t kElements = 100, kLevels = 7;
  const std::string sparse_one =
                        "0"
                        "100",  // one element that is not zero
      first = "0", tenth = "1110100", hundredth = "1011011001000", after = "1011011001010", plus = "0", minus = "1",
                    one = "0", seven = "101110", eight = "1110000", nine = "1110010", endless(2 + 4 + 16 + 1, '1');
  const struct {
    std::string bits, refusal;
  } cases[] = {
      {sparse_one + first + plus + one, ""},
      {sparse_one + hundredth + minus + seven, ""},
      {sparse_one + after + minus + seven, "beyond element 100"},
      {sparse_one + tenth + plus + eight, "level 8, beyond 7"},
      {sparse_one + tenth + plus + endless, "beyond 7"},
      {sparse_one + endless, "beyond element 100"},
      {sparse_one + tenth + plus + one + std::string(16, '0'), "goes on after its last word"},
      {sparse_one + tenth + plus + one + "001", "not zero"},
      {"1" + std::string(99, '0') + eight + minus, ""},
      {"1" + std::string(90, '0'), "ends early"},
      {"1" + std::string(99, '0') + nine + minus, "level 8, beyond 7"},
  };
  for (const auto& [bits, expected] : cases)
    for (const Target target : {Target::reference, Target::cpu}) {
      const auto code = elias_code_of(bits);
      const PackedTensor tensor = {kElements, planes(kElements, kLevels, 0), Tensor::empty({0}, {.dtype = DType::u8})};
      const int64_t length = std::ssize(code);
      const std::string found = message_of<Error>([&] {
        entropy_unpack.on(target)({&tensor, 1}, kLevels, Tensor::from({length}, code), {&length, 1});
      });
      if (expected.empty()) {
        EXPECT_EQ(found, "") << bits;
      } else {
        EXPECT_NE(found.find(expected), std::string::npos) << bits << ": " << found;
      }
    }
}

}  // namespace
}  // namespace tern::test
