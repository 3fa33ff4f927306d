#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <tuple>

#include "tern/core/error.h"
#include "tern/dist/exchange/coded.h"
#include "tern/kernels/recording.h"
#include "tests/dist/exchange/exchange_support.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

constexpr Device kCuda{DeviceType::cuda, 0};
const std::vector<Shape> kShapes = {{500}, {20, 1, 5, 5}, {0, 3}, {33}, {10}, {4099}};

class CudaMessages : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  }
  std::unique_ptr<GradientCodec> codec() const { return make_codec(GetParam()); }
};

TEST_P(CudaMessages, AreTheCpusByteForByte) {
  const auto on_cpu = codec(), on_cuda = codec();  // each with its own residuals
  MessageCodec &for_cpu = *on_cpu->messages(), &for_cuda = *on_cuda->messages();
  for (int rank = 0; rank < 3; ++rank) {
    const FusedGradients here = gradients_of(rank, kShapes), there = on_device(here, kCuda);
    const Tensor scalers = for_cpu.scalers(here), own = for_cuda.scalers(there);
    EXPECT_EQ(own.device(), kCuda);
    EXPECT_EQ(own.to_vector<float>(), scalers.to_vector<float>());
    for (const Tensor& shared : {Tensor(), scalers}) {
      const Tensor bytes = for_cuda.encode(there, shared.defined() ? own : Tensor());
      EXPECT_EQ(bytes.device(), kCuda);
      EXPECT_EQ(bytes.to_vector<uint8_t>(), for_cpu.encode(here, shared).to_vector<uint8_t>());
    }
  }
  EXPECT_NO_THROW(on_cuda->confirm(std::numeric_limits<int64_t>::max()));
}

TEST_P(CudaMessages, OfSeveralRanksAddUpToTheSumOfEach) {
  constexpr int kRanks = 3;
  const auto each = codec(), whole = codec();  // each with its own residuals
  MessageCodec& codec = *whole->messages();
  std::vector<uint8_t> bytes;
  std::vector<Tensor> expected, on_cpu, on_cuda;
  for (const Shape& shape : kShapes) {
    expected.push_back(Tensor::full(shape, 0.25));
    on_cpu.push_back(expected.back().clone());
    on_cuda.push_back(expected.back().to(kCuda));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    const FusedGradients message = gradients_of(rank, kShapes);
    const auto more = codec.encode(message, {}).to_vector<uint8_t>();
    bytes.insert(bytes.end(), more.begin(), more.end());
    for (size_t i = 0; i < message.size(); ++i)
      each->decode_add(message[i].tag, encoded(*each, message[i].gradient, message[i].tag), expected[i]);
  }
  const Tensor messages = Tensor::from({kRanks, static_cast<int64_t>(bytes.size()) / kRanks}, bytes);
  codec.decode_add(messages, {}, on_cpu);
  codec.decode_add(messages.to(kCuda), {}, on_cuda);
  for (size_t i = 0; i < kShapes.size(); ++i) {
    EXPECT_EQ(on_cpu[i].to_vector<float>(), expected[i].to_vector<float>()) << to_string(kShapes[i]);
    EXPECT_EQ(on_cuda[i].to_vector<float>(), expected[i].to_vector<float>()) << to_string(kShapes[i]);
  }
}

/// `encode` does not wait for the device, so that the tensor is named later, as one of its own step.
TEST_P(CudaMessages, NameTheTensorThatHasNaN) {
  constexpr uint32_t kStep = 5;
  for (const float unlike : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const auto each = codec();
    const auto encode = [&](const FusedGradients& message) {
      return each->messages()->encode(on_device(message, kCuda), {}).to_vector<uint8_t>();
    };
    FusedGradients message = gradients_of(0, kShapes, kStep);
    message[3].gradient.span<float>()[7] = unlike;
    encode(message);
    encode(gradients_of(0, kShapes, kStep + 1));
    EXPECT_NO_THROW(each->confirm(kStep));
    const std::string found = message_of<InputError>([&] { each->confirm(kStep + 1); });
    EXPECT_NE(found.find("gradient of 'layer3' has NaN or infinite elements"), std::string::npos) << found;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, CudaMessages,
    testing::Values("fp16", "bf16", "ternary", "ternary:bucket=100", "ternary:clip=0,bucket=32", "ternary:pack=5trit",
                    "ternary:pack=5trit,bucket=100", "qsgd", "qsgd:bits=8,bucket=0",
                    "qsgd:levels=100,bucket=1000,norm=l2", "qsgd:bucket=300,align=field",
                    "qsgd:bucket=20,align=field,norm=l2", "hadamard:bits=1", "hadamard", "topk-block",
                    "topk-block:keep=5,run=100,bits=32,short=full", "topk-block:decay=0.95", "topk", "topk:ratio=1",
                    "randk", "randk:ratio=1", "error-feedback:topk:ratio=0.1", "error-feedback:randk:ratio=0.1",
                    "error-feedback:fp16", "error-feedback:ternary", "error-feedback:ternary:pack=5trit",
                    "error-feedback:qsgd", "error-feedback:qsgd:norm=l2,bucket=0", "error-feedback:qsgd:align=field",
                    "error-feedback:hadamard", "onebit"));

/// Codecs of messages in parts. With 8 bits, the last tensor is a block of streams.
class CudaParts : public CudaMessages {};
const std::vector<Shape> kPartShapes = {{500}, {20, 1, 5, 5}, {0, 3}, {33}, {10}, {4099}, {70'001}};

TEST_P(CudaParts, AreTheCpusByteForByte) {
  const auto whole = codec(), each = codec();
  PartsCodec& parts = *whole->parts();
  const FusedGradients here = gradients_of(0, kPartShapes), there = on_device(here, kCuda);
  const ScaledCodec* const scaled = each->scaled();
  for (const bool is_shared : {false, true}) {
    if (is_shared && scaled == nullptr) continue;
    std::vector<float> scalers;
    std::vector<std::byte> expected;
    std::vector<int64_t> lengths;
    for (const auto& [tag, gradient] : here) {
      const size_t begin = expected.size();
      if (!is_shared) {
        each->encode(tag, gradient, expected);
      } else {
        const Tensor own = scaled->scalers(tag, gradient);
        std::ranges::copy(own.span<float>(), std::back_inserter(scalers));
        if (gradient.numel() != 0) scaled->append_codes(tag, gradient, own, expected);
      }
      lengths.push_back(static_cast<int64_t>(expected.size() - begin));
    }
    const Tensor shared = is_shared ? Tensor::from({std::ssize(scalers)}, scalers) : Tensor();
    const CodedMessage found = parts.encode_parts(there, shared);
    EXPECT_EQ(found.bytes.device(), kCuda);
    EXPECT_EQ(found.lengths, lengths);
    EXPECT_EQ(found.bytes.to_vector<uint8_t>(), tensor_of(expected).to_vector<uint8_t>());
  }
}

TEST_P(CudaParts, OfSeveralRanksAddUpToTheSumOfEach) {
  const auto each = codec(), whole = codec();
  std::vector<std::byte> bytes;
  std::vector<int64_t> lengths;
  std::vector<Tensor> expected, found;
  for (const Shape& shape : kPartShapes) {
    expected.push_back(Tensor::full(shape, 0.25));
    found.push_back(expected.back().to(kCuda));
  }
  for (int rank = 0; rank < 2; ++rank)
    for (size_t i = 0; const auto& [tag, gradient] : gradients_of(rank, kPartShapes)) {
      const std::vector<std::byte> more = encoded(*each, gradient, tag);
      bytes.insert(bytes.end(), more.begin(), more.end());
      lengths.push_back(std::ssize(more));
      each->decode_add(tag, more, expected[i++]);
    }
  whole->parts()->decode_add_parts(tensor_of(bytes).to(kCuda), lengths, {}, found);
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i].to_vector<float>(), expected[i].to_vector<float>()) << to_string(kPartShapes[i]);
}

/// The device does not tell that a code is not valid, but it ends.
std::vector<uint32_t> bits_of(const Tensor& tensor) {
  const auto values = tensor.to_vector<float>();
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// They end, and give the same numbers each time.
TEST_P(CudaParts, EndIfTheyAreDamaged) {
  const auto whole = codec();
  const FusedGradients message = on_device(gradients_of(0, {{500}, {4099}}), kCuda);
  const CodedMessage coded = whole->parts()->encode_parts(message, {});
  const std::vector<uint8_t> bytes = coded.bytes.to_vector<uint8_t>();
  const RandomStream stream({.seed = 9, .purpose = Purpose::test});
  for (uint64_t i = 0; i < 8; ++i) {
    auto damaged = bytes;
    for (uint64_t at = i % 2 == 0 ? 0 : damaged.size() / 2; at < damaged.size(); at += 1 + stream.below(i + at, 40))
      damaged[at] = static_cast<uint8_t>(stream.below(7 * i + at, 256));
    const Tensor on_cuda = Tensor::from({std::ssize(damaged)}, damaged).to(kCuda);
    const auto decoded = [&] {
      std::vector<Tensor> sums;
      for (const auto& [tag, gradient] : message) sums.push_back(Tensor::zeros_like(gradient));
      whole->parts()->decode_add_parts(on_cuda, coded.lengths, {}, sums);
      return std::pair(bits_of(sums[0]), bits_of(sums[1]));
    };
    EXPECT_EQ(decoded(), decoded());
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, CudaParts,
                         testing::Values("ternary:pack=entropy", "ternary:pack=entropy,bucket=100", "qsgd:code=entropy",
                                         "qsgd:code=entropy,bits=8,bucket=0,norm=max",
                                         "qsgd:code=entropy,levels=5,bucket=33",
                                         "qsgd:code=entropy,bucket=40,align=field", "qsgd:code=elias",
                                         "qsgd:code=elias,bits=16,bucket=0,norm=max",
                                         "qsgd:code=elias,levels=1,bucket=40,align=field",
                                         "error-feedback:qsgd:code=elias"));

/// Recorded work finds a residual where it was in the last step.
TEST(CudaFeedback, KeepsTheCpusResidualsInTheSameMemory) {
  if (const auto reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* spec :
       {"error-feedback:ternary", "error-feedback:qsgd:code=entropy", "error-feedback:hadamard", "error-feedback:bf16",
        "topk-block:decay=0.95", "error-feedback:topk:ratio=0.1", "error-feedback:randk:ratio=0.1"}) {
    const auto on_cpu = make_codec(spec), on_cuda = make_codec(spec);
    std::vector<Tensor> residuals;
    for (const auto& [tag, gradient] : gradients_of(9, kShapes)) {
      residuals.push_back(gradient.to(kCuda));
      on_cuda->feedback()->keep(tag, residuals.back());
      on_cpu->feedback()->keep(tag, gradient);
    }
    for (uint32_t step = 0; step < 3; ++step) {
      const FusedGradients message = gradients_of(0, kShapes, step);
      encode_all(*on_cpu, message, {});
      encode_all(*on_cuda, on_device(message, kCuda), {});
    }
    const StateDict expected = on_cpu->state();
    for (size_t i = 0; i < kShapes.size(); ++i)
      EXPECT_EQ(residuals[i].to_vector<float>(), expected.at("layer" + std::to_string(i)).to_vector<float>())
          << spec << " " << to_string(kShapes[i]);
  }
}

/// As docs/gpu.md tells, for messages of up to 128 tensors.
TEST(CudaLaunches, OfCodesAreAFewForAMessage) {
  if (const auto reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr int64_t kRanks = 3;
  for (const auto& [spec, to_encode, to_add] : {std::tuple{"ternary", size_t{4}, size_t{1}},
                                                {"ternary:pack=5trit", 5, 2},
                                                {"qsgd", 3, 1},
                                                {"qsgd:bucket=96", 4, 1},
                                                {"onebit", 6, 1},
                                                {"topk", 7, 1},
                                                {"randk", 7, 5 * kRanks}}) {
    const auto codec = make_codec(spec);
    const FusedGradients message = on_device(gradients_of(0, kShapes), kCuda);
    std::vector<Tensor> sums;
    for (const auto& [tag, gradient] : message) sums.push_back(Tensor::zeros_like(gradient));
    Tensor bytes;
    const auto encode = [&] { bytes = codec->messages()->encode(message, {}); };
    encode();
    EXPECT_EQ(record(kCuda, encode)->launches(), to_encode) << spec;
    const Tensor messages = Tensor::zeros({kRanks, bytes.numel()}, bytes.options());
    const auto add = [&] { codec->messages()->decode_add(messages, {}, sums); };
    add();
    EXPECT_EQ(record(kCuda, add)->launches(), to_add) << spec;
  }
}

struct Pair {
  const char* exchange;
  const char* codec;
};
std::ostream& operator<<(std::ostream& stream, const Pair& pair) {
  return stream << pair.exchange << " " << pair.codec;
}

class CudaExchanges : public testing::TestWithParam<Pair> {
  void SetUp() override {
    if (const auto reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_P(CudaExchanges, GiveTheCpusMeansAndMoveTheCpusBytes) {
  const auto& [exchange, codec] = GetParam();
  const TransportKind transport = transport_kinds()[0];
  const auto expected = exchange_once(transport, 2, exchange, codec, kShapes);
  const auto found = exchange_once(transport, 2, exchange, codec, kShapes, kCuda);
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    EXPECT_EQ(found[rank].means, expected[rank].means);
    EXPECT_EQ(found[rank].traffic, expected[rank].traffic);
    EXPECT_EQ(found[rank].device, kCuda);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, CudaExchanges,
    testing::Values(
        Pair{"ring", "none"}, Pair{"ring", "fp16"}, Pair{"ring", "bf16"}, Pair{"allgather", "fp16"},
        Pair{"allgather", "none"}, Pair{"allgather", "ternary"}, Pair{"allgather", "ternary:share=on"},
        Pair{"allgather", "qsgd"}, Pair{"allgather", "qsgd:code=elias"}, Pair{"allgather", "qsgd:code=entropy"},
        Pair{"allgather", "qsgd:code=entropy,align=field"}, Pair{"allgather", "qsgd:align=field"},
        Pair{"server", "error-feedback:qsgd:align=field"}, Pair{"server", "error-feedback:qsgd:code=elias,align=field"},
        Pair{"allgather", "ternary:pack=entropy"}, Pair{"allgather", "ternary:pack=entropy,share=on"},
        Pair{"server", "qsgd:code=entropy"}, Pair{"server", "ternary:pack=entropy"},
        Pair{"server", "ternary:pack=entropy,share=off"}, Pair{"ternary-ring", "ternary:pack=entropy"},
        Pair{"allgather", "hadamard"}, Pair{"allgather", "topk-block:decay=0.95"},
        Pair{"allgather-sent", "topk-block:decay=0.95"}, Pair{"allgather-sent", "error-feedback:topk"},
        Pair{"allgather", "error-feedback:topk"}, Pair{"server", "topk"}, Pair{"allgather", "randk"},
        Pair{"allgather-sent", "error-feedback:randk"}, Pair{"reduce-scatter", "qsgd"},
        Pair{"reduce-scatter", "ternary:share=on,bucket=96"}, Pair{"reduce-scatter", "ternary"},
        Pair{"reduce-scatter", "fp16"}, Pair{"reduce-scatter", "bf16"}, Pair{"reduce-scatter", "ternary:pack=5trit"},
        Pair{"reduce-scatter", "ternary:pack=5trit,bucket=160,share=on"}, Pair{"allgather", "error-feedback:ternary"},
        Pair{"allgather", "error-feedback:qsgd:code=entropy"}, Pair{"server", "error-feedback:qsgd"},
        Pair{"allgather", "onebit"}, Pair{"reduce-scatter", "onebit"},
        Pair{"server", "error-feedback:ternary:pack=entropy"}, Pair{"allgather", "error-feedback:hadamard"},
        Pair{"server", "none"}, Pair{"server", "qsgd"}, Pair{"server", "ternary"}, Pair{"server", "ternary:bucket=100"},
        Pair{"server", "ternary:pack=5trit"}, Pair{"server", "ternary:pack=5trit,share=off"},
        Pair{"allgather", "ternary:pack=5trit,bucket=100"}, Pair{"ternary-ring", "ternary"},
        Pair{"ternary-ring", "ternary:bucket=100"}));

}  // namespace
}  // namespace tern::test
