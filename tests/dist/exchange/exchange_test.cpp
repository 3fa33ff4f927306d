#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tern/core/error.h"
#include "tern/dist/codec/spec.h"
#include "tern/kernels/short_float.h"
#include "tests/dist/exchange/exchange_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

class Exchanges : public testing::TestWithParam<std::tuple<ExchangePair, int>> {
 protected:
  std::string exchange() const { return std::get<0>(GetParam()).exchange; }
  std::string codec() const { return std::get<0>(GetParam()).codec; }
  int ranks() const { return std::get<1>(GetParam()); }
};

TEST_P(Exchanges, LeaveTheSameBitsOnAllRanksAndTransports) {
  for (const auto& shapes : kExchangeShapes) {
    std::vector<std::vector<float>> expected;
    for (const auto& kind : transport_kinds()) {
      const auto results = exchange_once(kind, ranks(), exchange(), codec(), shapes);
      if (expected.empty()) expected = results[0].means;
      for (const auto& result : results) EXPECT_EQ(result.means, expected) << kind;
    }
  }
}

// Twice, because the second message of a codec with error feedback meets a residual. One tensor is no difference.
TEST_P(Exchanges, TakeDifferencesAsIfTheyWereComputed) {
  const std::vector<Shape> shapes = {{7}, {0, 3}, {20, 1, 5, 5}, {33}};
  expect_on_ranks(ranks(), [&](Communicator& c) {
    const auto codec = make_codec(this->codec()), other_codec = make_codec(this->codec());
    const auto way = make_exchange(exchange(), *codec, c), other = make_exchange(exchange(), *other_codec, c);
    for (uint32_t step = 0; step < 2; ++step) {
      const FusedGradients message = gradients_of(c.rank(), shapes, step);
      std::vector<Tensor> minus = {gaussian({7}, step), gaussian({0, 3}), {}, gaussian({33}, step)};
      const auto expected = other->start(differences(message, minus))(), found = way->start(message, minus)();
      for (size_t i = 0; i < shapes.size(); ++i)
        EXPECT_EQ(found[i].to_vector<float>(), expected[i].to_vector<float>()) << i;
    }
  });
}

bool shares_scalers(const std::string& exchange, const GradientCodec& codec) {
  if (codec.scaled() == nullptr) return false;
  const ScalerSharing sharing = codec.scaled()->sharing();
  const bool sums = exchange == "server" || exchange == "ternary-ring";
  return sharing == ScalerSharing::on || (sums && sharing == ScalerSharing::automatic);
}

/// The largest scaler over all ranks, for each bucket.
Tensor largest_scalers(int ranks, const ScaledCodec& codec, const Shape& shape) {
  Tensor largest;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto [tag, gradient] = gradients_of(rank, {shape})[0];
    const Tensor own = codec.scalers(tag, gradient);
    if (!largest.defined()) largest = own;
    for (int64_t b = 0; b < own.numel(); ++b)
      largest.data<float>()[b] = std::max(largest.data<float>()[b], own.data<float>()[b]);
  }
  return largest;
}

/// Encodes and decodes each rank's gradient, and returns the mean.
Tensor mean_of_decoded(int ranks, const std::string& exchange, const std::string& spec, const Shape& shape) {
  Tensor sum = Tensor::zeros(shape);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto codec = make_codec(spec);
    const auto [tag, gradient] = gradients_of(rank, {shape})[0];
    if (shares_scalers(exchange, *codec)) {
      const Tensor scalers = largest_scalers(ranks, *codec->scaled(), shape);
      std::vector<std::byte> codes;
      codec->scaled()->append_codes(tag, gradient, scalers, codes);
      codec->scaled()->add_codes(codes, scalers, sum);
    } else {
      codec->decode_add(tag, encoded(*codec, gradient, tag), sum);
    }
  }
  for (float& x : sum.span<float>()) x /= static_cast<float>(ranks);
  return sum;
}

TEST_P(Exchanges, GiveTheMeanOfWhatEachRankCodes) {
  // These code the mean again, or have another mean.
  if (exchange() == "reduce-scatter" || exchange() == "allgather-sent") return;
  const Shape shape = {4099};
  const Tensor expected = mean_of_decoded(ranks(), exchange(), codec(), shape);
  const auto results = exchange_once(transport_kinds()[0], ranks(), exchange(), codec(), {shape});
  // A ring of 16-bit floats rounds the sum at each hop to 11 or 8 bits, at most N + 1 times.
  const double precision = codec() == "fp16" ? 0x1p-11 : codec() == "bf16" ? 0x1p-8 : 0x1p-23;
  for (size_t i = 0; i < results[0].means[0].size(); ++i)
    ASSERT_NEAR(results[0].means[0][i], expected.span<float>()[i], (ranks() + 1) * precision * 8) << i;
}

// Rank 0 keeps elements 0 and 1, and rank 1 keeps 1 and 2. `allgather` divides all of them by two.
TEST(AllGatherSent, TakesTheMeanOverTheRanksThatSentAnElement) {
  for (const char* spec : {"topk:ratio=0.5", "topk-block:keep=2,side=2,bits=32"})
    expect_on_ranks(2, [spec](Communicator& c) {
      const auto codec = make_codec(spec);
      const Tensor g = c.rank() == 0 ? Tensor::from<float>({4}, {8, 6, 1, 0}) : Tensor::from<float>({4}, {1, 2, -4, 0});
      const auto means = [&](const char* exchange) {
        return make_exchange(exchange, *codec, c)->start({{{"w", {}}, g}})()[0].to_vector<float>();
      };
      EXPECT_EQ(means("allgather-sent"), (std::vector<float>{8, 4, -4, 0}));
      EXPECT_EQ(means("allgather"), (std::vector<float>{4, 4, -2, 0}));
    });
}

TEST(ReduceScatter, RoundsShortFloatsOnceAndTheirMeanOnce) {
  constexpr int kRanks = 4;
  const std::vector<Shape> shapes = {{7}, {0, 3}, {20, 1, 5, 5}, {33}};
  for (const auto& [spec, format] :
       {std::pair{"fp16", kernels::ShortFloat::half}, {"bf16", kernels::ShortFloat::brain}}) {
    const auto rounded = [format = format](float x) {
      return kernels::short_value(kernels::short_bits(x, format), format);
    };
    const auto results = exchange_once(transport_kinds()[0], kRanks, "reduce-scatter", spec, shapes);
    for (size_t tensor = 0; tensor < shapes.size(); ++tensor) {
      std::vector<float> expected(static_cast<size_t>(shapes[tensor].numel()));
      for (int rank = 0; rank < kRanks; ++rank)
        for (size_t i = 0; const float x : gradients_of(rank, shapes)[tensor].gradient.to_vector<float>())
          expected[i++] += rounded(x);
      for (float& x : expected) x = rounded(x / kRanks);
      EXPECT_EQ(results[1].means[tensor], expected) << spec << " " << tensor;
    }
  }
}

// An fp16 holds at most 65504. On a ring, a partial sum of 90000 would travel.
TEST(ReduceScatter, SendsNoSumThatAnFp16CannotHold) {
  const auto mean = [](const char* exchange) {
    return with_communicators(make_in_process(4), [exchange](Communicator& c) {
      const auto codec = make_codec("fp16");
      const auto means = make_exchange(exchange, *codec, c)->start({{{"w", {}}, Tensor::full({9}, 30000)}})();
      EXPECT_EQ(means[0].to_vector<float>(), std::vector<float>(9, 30000));
    });
  };
  EXPECT_EQ(mean("reduce-scatter"), std::vector<std::string>(4));
  EXPECT_TRUE(std::ranges::any_of(mean("ring"), [](const std::string& error) {
    return error.find("reaches 90000, beyond what fp16 holds") != std::string::npos;
  }));
}

/// A program's own codec around one of tern's, without its error feedback. It makes no whole messages, or each begins
/// with NaN.
class OwnCodec final : public WholeMessageCodec {
 public:
  OwnCodec(const char* spec, bool makes_messages) : whole_(make_codec(spec)), makes_messages_(makes_messages) {}

  std::string spec() const override { return "own"; }
  CodecTraits traits() const override { return codec_.traits(); }
  int64_t most_bytes(const Shape& shape) const override { return codec_.most_bytes(shape); }
  const ScaledCodec* scaled() const override { return codec_.scaled(); }
  MessageCodec* messages() override { return makes_messages_ ? this : nullptr; }
  Tensor encode(const FusedGradients& message, const Tensor& shared) override {
    Tensor bytes = codec_.messages()->encode(message, shared);
    std::memset(bytes.data<uint8_t>(), 0xff, sizeof(float));
    return bytes;
  }
  void decode_add(const Tensor& messages, const Tensor& shared, std::span<const Tensor> sums) const override {
    codec_.messages()->decode_add(messages, shared, sums);
  }
  void subtract(const Tensor&, const Tensor&, std::span<const Tensor>) const override {}

 private:
  std::unique_ptr<GradientCodec> whole_;
  GradientCodec& codec_ = whole_->feedback() == nullptr ? *whole_ : whole_->feedback()->inner();
  bool makes_messages_;
};

TEST(ReduceScatter, RefusesACodecWithoutWholeMessages) {
  expect_on_ranks(1, [](Communicator& c) {
    OwnCodec codec("ternary", false);
    EXPECT_EQ(message_of<InputError>([&] { make_exchange("reduce-scatter", codec, c); }),
              "exchange reduce-scatter: codec own makes no whole messages (MessageCodec), from which codes can be cut; "
              "expected allgather or server for this codec");
  });
}

TEST(ReduceScatter, NamesTheCodecAndTheTensorsOfADamagedMessage) {
  const auto error_of = [](std::unique_ptr<GradientCodec> codec) {
    const auto body = [&](Communicator& c) {
      make_exchange("reduce-scatter", *codec, c)->start(gradients_of(0, {{8, 4}, {5}}))();
    };
    return with_communicators(make_in_process(1), body).front();
  };
  EXPECT_EQ(error_of(std::make_unique<OwnCodec>("ternary", true)),
            "codec own, tensor 'layer0 to layer1': message holds a scaler that is negative or not finite");
  EXPECT_EQ(error_of(with_built_in_feedback(std::make_unique<OwnCodec>("onebit", true))),
            "codec own, tensor 'layer0 to layer1': message holds a mean that is not finite");
}

INSTANTIATE_TEST_SUITE_P(Table, Exchanges,
                         testing::Combine(testing::ValuesIn(kExchangePairs), testing::Values(1, 2, 3, 4, 8)));

TEST(ExchangeGrid, RefusesAPairAndNamesTheOnesThatGo) {
  EXPECT_EQ(
      message_of<InputError>([] { check_exchange("ring", *make_codec("topk:ratio=0.1")); }),
      "exchange ring takes none, fp16 and bf16, not topk:ratio=0.1; expected allgather, allgather-sent, server for "
      "this codec");
  EXPECT_EQ(
      message_of<InputError>([] { check_exchange("ternary-ring", *make_codec("ternary:share=off,pack=entropy")); }),
      "exchange ternary-ring takes ternary with share=auto or on, not "
      "ternary:clip=2.5,clip-mode=paper,share=off,bucket=0,pack=entropy; expected allgather, server for this codec");
  EXPECT_EQ(
      message_of<InputError>([] { check_exchange("reduce-scatter", *make_codec("qsgd:bucket=100")); }),
      "exchange reduce-scatter takes ternary (2bit or 5trit) and qsgd (fixed, align=none), with a bucket of whole "
      "bytes: a multiple of 32 (5trit: 5); fp16, bf16 and onebit, not "
      "qsgd:bits=4,bucket=100,norm=max,code=fixed,align=none; expected allgather, server for this codec");
  EXPECT_EQ(
      message_of<InputError>([] { check_exchange("rign", *make_codec("none")); }),
      "no exchange 'rign'; there are ring, allgather, allgather-sent, reduce-scatter, server, ternary-ring, powersgd");
  EXPECT_EQ(message_of<InputError>([] { check_exchange("powersgd:rank=0", *make_codec("none")); }),
            "exchange powersgd: rank=0; expected a whole number from 1 to 1024");
  EXPECT_EQ(message_of<InputError>([] { check_exchange("powersgd:ranks=2", *make_codec("none")); }),
            "exchange powersgd: no parameter 'ranks'; it has rank, start");
  EXPECT_EQ(message_of<InputError>([] { check_exchange("ring:rank=2", *make_codec("none")); }),
            "exchange ring: no parameter 'rank'; it has none");
  EXPECT_EQ(message_of<InputError>([] { check_exchange("powersgd:", *make_codec("none")); }),
            "exchange powersgd: no parameter follows ':'; it has rank, start");
  EXPECT_EQ(
      message_of<InputError>([] { check_exchange("powersgd", *make_codec("ternary")); }),
      "exchange powersgd takes none, not ternary:clip=2.5,clip-mode=paper,share=auto,bucket=0,pack=2bit; expected "
      "allgather, reduce-scatter, server, ternary-ring for this codec");
}

TEST(ExchangeGrid, IsInTheHelp) {
  const std::string help = exchange_help();
  for (const std::string& name : exchange_names()) EXPECT_NE(help.find("\n" + name + "\n"), std::string::npos) << name;
  for (const char* row :
       {"                none     fp16     bf16     ternary  qsgd     onebit   topk     randk    topk-block  "
        "hadamard\n",
        "reduce-scatter  -        yes      yes      yes      yes      yes      -        -        -           -\n",
        "Exchanges for error-feedback:CODEC: allgather, server; of topk, topk-block and randk also "})
    EXPECT_NE(help.find(row), std::string::npos) << help;
}

TEST(DefaultExchange, MovesLeast) {
  const auto of = [](const char* codec, int ranks) { return default_exchange(*make_codec(codec), ranks); };
  EXPECT_EQ(of("none", 2), "ring");
  EXPECT_EQ(of("bf16", 16), "ring");
  EXPECT_EQ(of("ternary", 31), "allgather");
  EXPECT_EQ(of("ternary", 32), "ternary-ring");
  EXPECT_EQ(of("ternary:bucket=100,pack=entropy", 32), "ternary-ring");
  EXPECT_EQ(of("ternary:clip-mode=own", 32), "ternary-ring");
  EXPECT_EQ(of("ternary:share=off", 32), "reduce-scatter");
  EXPECT_EQ(of("ternary:share=off,pack=entropy", 32), "allgather");
  EXPECT_EQ(of("qsgd:bits=4", 15), "allgather");
  EXPECT_EQ(of("qsgd:bits=4", 16), "reduce-scatter");
  EXPECT_EQ(of("qsgd:bits=4,code=elias", 16), "allgather");
  EXPECT_EQ(of("error-feedback:topk", 64), "allgather");
  EXPECT_EQ(of("onebit", 63), "allgather");
  EXPECT_EQ(of("onebit", 64), "reduce-scatter");
}

}  // namespace
}  // namespace tern::test
