#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tern/core/error.h"
#include "tern/dist/comm/bytes.h"
#include "tests/dist/codec/codec_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

// The tests take every codec by its name alone, with its default packing. These variants add every other packing.
const char* const kVariants[] = {
    "ternary:clip=0,pack=5trit",
    "ternary:clip=2.5,clip-mode=reference,pack=entropy,bucket=100",
    "ternary:clip-mode=own,share=on,bucket=100",
    "qsgd:bits=2,bucket=128,norm=max,code=elias",
    "qsgd:levels=32,bucket=0,code=entropy",
    "qsgd:bits=16,norm=max",
    "qsgd:bits=4,norm=l2",
    "qsgd:bucket=300,align=field",
    "qsgd:bucket=300,align=field,code=entropy",
    "qsgd:bucket=300,align=field,code=elias",
    "topk:ratio=0.1",
    "randk:ratio=0.1",
    "topk-block:keep=200,side=32,decay=0.9",
    "topk-block:keep=32,side=16,short=full,bits=32",
    "hadamard:bits=1",
    "hadamard:bits=3",
    "hadamard:bits=4",
    "error-feedback:ternary:pack=5trit",
    "error-feedback:qsgd",
    "error-feedback:qsgd:norm=l2",
    "error-feedback:topk",
    "error-feedback:randk:ratio=0.25",
    "error-feedback:bf16",
};

std::vector<std::string> specs() {
  std::vector<std::string> all = codec_names();
  all.insert(all.end(), std::begin(kVariants), std::end(kVariants));
  return all;
}

class CodecConformance : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<GradientCodec> codec() const { return make_codec(GetParam()); }
};

const Shape kShapes[] = {{0}, {1}, {2}, {5}, {31}, {33}, {255}, {257}, {20, 1, 5, 5}, {7, 0, 3}, {100, 10}, {4099}};

TEST_P(CodecConformance, KeepsToItsSize) {
  for (const Shape& shape : kShapes) {
    const auto each = codec();
    const auto bytes = encoded(*each, gaussian(shape));
    const auto most = static_cast<size_t>(each->most_bytes(shape));
    if (each->traits().fixed_size) {
      EXPECT_EQ(bytes.size(), most) << to_string(shape);
    }
    EXPECT_LE(bytes.size(), most) << to_string(shape);
    if (shape.numel() == 0) {
      EXPECT_EQ(most, 0u);
    }
    if (shape.numel() > 4000 && each->traits().bits >= 1) {
      EXPECT_LE(static_cast<double>(bytes.size()), each->traits().bits * 4099 / 8 + 4 * 42 + 16);
    }
  }
}

TEST_P(CodecConformance, AddsTheSameBitsWheneverItDecodes) {
  for (const Shape& shape : kShapes) {
    const auto sender = codec(), again = codec(), receiver = codec();
    const Tensor g = gaussian(shape);
    const auto bytes = encoded(*sender, g);
    EXPECT_EQ(bytes, encoded(*again, g));
    EXPECT_EQ(decoded(*sender, bytes, shape).to_vector<float>(), decoded(*receiver, bytes, shape).to_vector<float>());
    Tensor sum = Tensor::full(shape, 1);
    receiver->decode_add(tag(), bytes, sum);
    const Tensor once = decoded(*receiver, bytes, shape);
    for (size_t i = 0; i < sum.span<float>().size(); ++i) EXPECT_EQ(sum.span<float>()[i], 1 + once.span<float>()[i]);
  }
}

TEST_P(CodecConformance, BringsZeroBackAsZero) {
  for (const Shape& shape : kShapes) {
    const auto each = codec();
    for (const float value : through(*each, Tensor::zeros(shape)).to_vector<float>()) EXPECT_EQ(value, 0);
  }
}

TEST_P(CodecConformance, RefusesNaNAndInfinityByTheTensorsName) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity})
    for (const int64_t where : {0, 30, 532}) {
      const auto each = codec();
      Tensor g = gaussian({533});
      g.span<float>()[where] = bad;
      const std::string message = message_of<Error>([&] { encoded(*each, g); });
      EXPECT_NE(message.find("'conv1.weight'"), std::string::npos) << message;
    }
}

/// The gradient that the codec's promise refers to. For scaled codecs it is clipped to levels × scaler.
Tensor target_of(const GradientCodec& codec, const Tensor& g) {
  if (codec.scaled() == nullptr) return g;
  const Tensor scalers = codec.scaled()->scalers(tag(), g);
  Tensor target = g.clone();
  const auto levels = static_cast<float>(codec.scaled()->levels());
  const int64_t bucket = codec.scaled()->bucket(), width = bucket == 0 ? g.numel() : bucket;
  for (int64_t i = 0; i < g.numel(); ++i) {
    const float limit = levels * scalers.data<float>()[i / width];
    target.data<float>()[i] = std::clamp(target.data<float>()[i], -limit, limit);
  }
  return target;
}

TEST_P(CodecConformance, GivesTheSameBytesWithScalersApart) {
  const auto each = codec();
  const ScaledCodec* const scaled = each->scaled();
  if (scaled == nullptr) return;
  const Tensor g = gaussian({4099});
  const Tensor scalers = scaled->scalers(tag(), g);
  std::vector<std::byte> apart;
  append_values<float>(apart, scalers.span<float>());
  scaled->append_codes(tag(), g, scalers, apart);
  EXPECT_EQ(apart, encoded(*each, g));
  EXPECT_EQ(scaled->granule() != 0, each->traits().fixed_size);
}

// Unbiased codecs: M = 2000 draws of 1000 elements. For every element, the mean error is within the empirical Bernstein
// bound √(2V·l/M) + 7l/3·R/M (Maurer and Pontil, 2009). V is the sample variance of the element's error. R is the
// largest error seen. With l = 21.4, the probability of a false alarm over all elements is 1e-6. The mean squared error
// is at most ω|g|². The test allows 5 % more, because this mean is of random draws. Codecs that are neither exact nor
// unbiased: a single decoded gradient is nearer to g than 0 is.
TEST_P(CodecConformance, KeepsItsPromise) {
  const auto each = codec();
  const Tensor g = gaussian({1000});
  const CodecPromise promise = each->traits().promise;
  if (promise == CodecPromise::exact) {
    EXPECT_EQ(through(*each, g).to_vector<float>(), g.to_vector<float>());
  } else if (promise != CodecPromise::unbiased) {
    EXPECT_LT(squared_distance(through(*each, g), g), squared_norm(g));
  } else {
    constexpr int kDraws = 2000;
    const Tensor target = target_of(*each, g);
    std::vector<double> sums(1000), squares(1000);
    double error = 0, largest = 0;
    for (uint32_t step = 0; step < kDraws; ++step) {
      const Tensor found = through(*each, g, tag(0, step));
      error += squared_distance(found, target);
      for (size_t i = 0; i < 1000; ++i) {
        const double d = double{found.span<float>()[i]} - target.span<float>()[i];
        sums[i] += d;
        squares[i] += d * d;
        largest = std::max(largest, std::abs(d));
      }
    }
    for (size_t i = 0; i < 1000; ++i) {
      const double mean = sums[i] / kDraws, variance = std::max(0.0, squares[i] / kDraws - mean * mean);
      EXPECT_LE(std::abs(mean), std::sqrt(42.8 * variance / kDraws) + 50 * largest / kDraws) << "element " << i;
    }
    EXPECT_LE(error / kDraws, 1.05 * each->omega(tag(), g) * squared_norm(target));
  }
}

void flip(std::vector<std::byte>& bytes, uint32_t bit) { bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8); }

// The message is cut, lengthened, filled with noise, or has single bits flipped. The codec throws an error that names
// the tensor, or it decodes some gradient. It must not crash.
TEST_P(CodecConformance, SurvivesHostileBytes) {
  const RandomStream stream({.seed = 3, .purpose = Purpose::test});
  uint64_t word = 0;
  int refused = 0;
  for (const Shape& shape : {Shape{1}, Shape{37}, Shape{12, 25}}) {
    const auto each = codec();
    const auto good = encoded(*each, gaussian(shape));
    const auto attempt = [&](const std::vector<std::byte>& bytes) {
      try {
        decoded(*each, bytes, shape);
      } catch (const Error& error) {
        ++refused;
        EXPECT_NE(std::string(error.what()).find("tensor 'conv1.weight'"), std::string::npos) << error.what();
      }
    };
    for (size_t length = 0; length < good.size(); length += 1 + length / 8)
      attempt({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)});
    auto longer = good;
    longer.push_back(std::byte{0});
    attempt(longer);
    for (int i = 0; i < 300; ++i) {
      auto bytes = good;
      if (i % 3 == 0)
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(stream.word(word++));
      else
        flip(bytes, stream.below(word++, static_cast<uint32_t>(8 * bytes.size())));
      attempt(bytes);
    }
  }
  EXPECT_GT(refused, 3);
}

TEST_P(CodecConformance, ResumesFromItsState) {
  const auto whole = codec(), before = codec(), after = codec();
  const Tensor g = gaussian({300});
  encoded(*whole, g);
  encoded(*before, g);
  after->load_state(before->state());
  EXPECT_EQ(encoded(*after, g, tag(0, 1)), encoded(*whole, g, tag(0, 1)));
}

TEST_P(CodecConformance, TakesAMillionElements) {
  const auto each = codec();
  const Tensor g = gaussian({1000, 1001});
  EXPECT_TRUE(std::isfinite(squared_norm(through(*each, g))));
}

TEST(MessageCodec, SubtractsWhatItDecodes) {
  const Shape shapes[] = {{100, 10}, {0}, {33}};
  int codecs = 0;
  for (const std::string& spec : specs()) {
    const auto codec = make_codec(spec);
    MessageCodec* const messages = codec->messages();
    if (messages == nullptr) continue;
    ++codecs;
    FusedGradients message;
    std::vector<Tensor> decoded, left;
    for (uint32_t i = 0; i < 3; ++i) {
      message.push_back({{std::to_string(i), tag().key}, gaussian(shapes[i], i)});
      decoded.push_back(Tensor::zeros(shapes[i]));
      left.push_back(gaussian(shapes[i], 7 + i));
    }
    const Tensor bytes = messages->encode(message, {});
    messages->decode_add(bytes.reshape({1, bytes.numel()}), {}, decoded);
    messages->subtract(bytes, {}, left);
    for (uint32_t i = 0; i < 3; ++i) {
      std::vector<float> expected = gaussian(shapes[i], 7 + i).to_vector<float>();
      for (size_t e = 0; e < expected.size(); ++e) expected[e] -= decoded[i].span<float>()[e];
      EXPECT_EQ(left[i].to_vector<float>(), expected) << spec;
    }
  }
  EXPECT_GE(codecs, 10);
}

// Two implementations: `encode` makes one tensor's symbols and uses append_rans; parts are packed by a kernel. Some
// tensors have Elias codes, some are one stream of rANS, and some are blocks. With `code=elias`, append_elias makes the
// codes of one tensor.
TEST(PartsCodec, HasTheBytesAndTheSumOfEachTensor) {
  const Shape shapes[] = {{1000}, {0, 3}, {33}, {70'001}, {300, 1001}};
  for (const char* spec : {"ternary:pack=entropy", "ternary:pack=entropy,bucket=100", "qsgd:code=entropy",
                           "qsgd:code=entropy,bits=8,bucket=0,norm=max", "qsgd:code=entropy,bucket=40,align=field",
                           "qsgd:code=elias", "qsgd:code=elias,bits=16,bucket=0",
                           "qsgd:code=elias,levels=1,bucket=40,align=field", "error-feedback:ternary:pack=entropy"}) {
    const auto codec = make_codec(spec), whole = make_codec(spec);  // each with its own residuals
    FusedGradients message;
    std::vector<std::byte> expected;
    std::vector<int64_t> lengths;
    std::vector<Tensor> sums, expected_sums;
    for (uint32_t i = 0; i < std::size(shapes); ++i) {
      message.push_back({{std::to_string(i), tag().key}, gaussian(shapes[i], i)});
      const auto more = encoded(*codec, message[i].gradient, message[i].tag);
      expected.insert(expected.end(), more.begin(), more.end());
      lengths.push_back(std::ssize(more));
      for (auto* const to : {&sums, &expected_sums}) to->push_back(Tensor::full(shapes[i], 0.5));
      codec->decode_add(message[i].tag, more, expected_sums[i]);
    }
    const CodedMessage found = whole->parts()->encode_parts(message, {});
    EXPECT_EQ(found.lengths, lengths) << spec;
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(found.bytes.span<uint8_t>()), expected)) << spec;
    whole->parts()->decode_add_parts(found.bytes, lengths, {}, sums);
    for (uint32_t i = 0; i < std::size(shapes); ++i)
      EXPECT_EQ(sums[i].to_vector<float>(), expected_sums[i].to_vector<float>()) << spec << ", tensor " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodecConformance, testing::ValuesIn(specs()), [](const auto& parameter) {
  std::string name = parameter.param;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace tern::test
