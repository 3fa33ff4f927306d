#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tern/core/error.h"
#include "tests/dist/codec/codec_support.h"

namespace tern::test {
namespace {

// The sum of what was sent and what is kept equals the sum of the gradients.
TEST(ErrorFeedback, LosesNothing) {
  for (const char* spec : {"onebit", "error-feedback:topk:ratio=0.05", "error-feedback:ternary"}) {
    const auto codec = make_codec(spec);
    const Shape shape{40, 25};
    Tensor total = Tensor::zeros(shape), sent = Tensor::zeros(shape);
    for (uint32_t step = 0; step < 20; ++step) {
      const Tensor g = gaussian(shape, step);
      for (int64_t i = 0; i < 1000; ++i) total.data<float>()[i] += g.data<float>()[i];
      codec->decode_add(tag(), encoded(*codec, g, tag(0, step)), sent);
    }
    const StateDict state = codec->state();
    ASSERT_EQ(state.size(), 1u);
    const Tensor kept = state.at("conv1.weight");
    for (int64_t i = 0; i < 1000; ++i)
      EXPECT_NEAR(sent.data<float>()[i] + kept.data<float>()[i], total.data<float>()[i], 1e-4) << spec;
  }
}

// 10,000 Gaussian steps. Without factors, the residual of qsgd with l2 grows beyond 1e6 within 400 steps.
TEST(ErrorFeedback, KeepsTheResidualBoundedSlow) {
  for (const char* spec : {"error-feedback:qsgd", "error-feedback:qsgd:norm=l2", "error-feedback:ternary"}) {
    const auto codec = make_codec(spec);
    for (uint32_t step = 0; step < 10000; ++step) encoded(*codec, gaussian({512}, step % 97), tag(0, step));
    const double deviation = std::sqrt(squared_norm(codec->state().at("conv1.weight")) / 512);
    EXPECT_LT(deviation, 3) << spec;
  }
}

// A whole message is the messages of its tensors, one after the other, and leaves the same residuals.
TEST(ErrorFeedback, OfAWholeMessageIsThatOfEachTensor) {
  for (const char* spec : {"topk-block:decay=0.9", "topk-block:keep=2,run=16,bits=32,decay=1", "error-feedback:bf16",
                           "error-feedback:topk:ratio=0.1", "error-feedback:randk:ratio=0.1", "error-feedback:ternary",
                           "error-feedback:qsgd"}) {
    // Codecs with factors and scalers put those of all tensors first, so only the residuals can be compared.
    const bool same_bytes = make_codec(spec)->most_bytes({7}) == make_codec(spec)->feedback()->inner().most_bytes({7});
    const auto whole = make_codec(spec), each = make_codec(spec);
    const Shape shapes[] = {{40, 25}, {0, 3}, {7}};
    for (uint32_t step = 0; step < 3; ++step) {
      FusedGradients message;
      std::vector<std::byte> expected;
      for (uint32_t i = 0; i < 3; ++i) {
        message.push_back({{std::to_string(i), {}}, gaussian(shapes[i], 3 * step + i)});
        each->encode(message.back().tag, message.back().gradient, expected);
      }
      const Tensor bytes = whole->messages()->encode(message, {});
      EXPECT_EQ(bytes.bytes(), expected.size()) << spec;
      if (same_bytes) {
        EXPECT_TRUE(std::ranges::equal(std::as_bytes(bytes.span<uint8_t>()), expected)) << spec;
      }
      const StateDict residuals = whole->state();
      EXPECT_EQ(residuals.size(), 2u);
      for (const auto& [name, residual] : each->state())
        EXPECT_EQ(residuals.at(name).to_vector<float>(), residual.to_vector<float>()) << spec;
    }
    const auto before = whole->state().at("0").to_vector<float>();
    FusedGradients broken = {{{"0", {}}, gaussian(shapes[0])}, {{"2", {}}, gaussian(shapes[2])}};
    broken[1].gradient.span<float>()[3] = std::numeric_limits<float>::infinity();
    EXPECT_THROW(whole->messages()->encode(broken, {}), InputError);
    EXPECT_EQ(whole->state().at("0").to_vector<float>(), before) << "a refused message changed a residual";
  }
}

// 40 levels of one sign: without a factor, the residual would be far longer than the gradient.
TEST(ErrorFeedback, LeavesOutNoMoreThanItEncodes) {
  for (const char* spec : {"error-feedback:qsgd:bits=2,norm=l2,bucket=0", "error-feedback:ternary:clip=0",
                           "error-feedback:randk:ratio=0.05", "error-feedback:hadamard:bits=1"}) {
    const auto codec = make_codec(spec);
    const Tensor g = gaussian({4000});
    encoded(*codec, g);
    EXPECT_LT(squared_norm(codec->state().at("conv1.weight")), squared_norm(g)) << spec;
    EXPECT_GT(squared_distance(through(codec->feedback()->inner(), g), g), 0.4 * squared_norm(g)) << spec;
  }
}

TEST(ErrorFeedback, KeepsAResidualPerTensor) {
  const auto codec = make_codec("error-feedback:topk");
  std::vector<std::byte> bytes;
  codec->encode({"a", {}}, gaussian({10}), bytes);
  codec->encode({"b", {}}, gaussian({20}), bytes);
  EXPECT_EQ(codec->state().at("a").shape(), Shape{10});
  EXPECT_EQ(codec->state().at("b").shape(), Shape{20});
}

// Only a state from a checkpoint can have another shape than the gradient.
TEST(ErrorFeedback, RefusesAResidualThatIsNotAsItsGradient) {
  const auto codec = make_codec("error-feedback:topk");
  StateDict state;
  state.add("conv1.weight", Tensor::zeros({4, 5}));
  codec->load_state(state);
  try {
    encoded(*codec, gaussian({5, 4}));
    FAIL() << "took a residual of another shape";
  } catch (const InputError& refused) {
    EXPECT_STREQ(
        refused.what(),
        "error feedback: the residual of 'conv1.weight': found f32 [4, 5], expected f32 [5, 4] as its gradient");
  }
}

// The columns in the paper are the rows of a weight [out, ...]. Each has two means.
TEST(OneBit, SendsTwoMeansAColumn) {
  const auto codec = make_codec("onebit");
  const Tensor g = Tensor::from({2, 3}, std::vector<float>{1, 3, -2, -4, -6, 0});
  EXPECT_EQ(codec->most_bytes({2, 3}), 2 * 8 + 1);
  EXPECT_EQ(through(*codec, g).to_vector<float>(), (std::vector<float>{2, 2, -2, -5, -5, 0}));
  EXPECT_EQ(codec->state().at("conv1.weight").to_vector<float>(), (std::vector<float>{-1, 1, 0, 1, -1, 0}));
  EXPECT_EQ(make_codec("onebit")->most_bytes({6}), 8 + 1) << "a vector is one column";
}

TEST(TopK, KeepsTheLargestAndOfEqualsTheFirst) {
  const Tensor g = Tensor::from({6}, std::vector<float>{1, -5, 2, 2, 0, -2});
  EXPECT_EQ(through(*make_codec("topk:ratio=0.5"), g).to_vector<float>(), (std::vector<float>{0, -5, 2, 2, 0, 0}));
}

TEST(RandK, ScalesWhatItKeeps) {
  const auto found = through(*make_codec("randk:ratio=0.25"), Tensor::full({1000}, 2)).to_vector<float>();
  EXPECT_EQ(std::count(found.begin(), found.end(), 8.0f), 250);
  EXPECT_EQ(std::count(found.begin(), found.end(), 0.0f), 750);
}

// ω is exactly n/k − 1.
TEST(RandK, HasItsVarianceExactly) {
  const auto codec = make_codec("randk:ratio=0.1");
  const Tensor g = gaussian({1000});
  double error = 0;
  for (uint32_t step = 0; step < 2000; ++step) error += squared_distance(through(*codec, g, tag(0, step)), g) / 2000;
  EXPECT_NEAR(error / squared_norm(g), 9, 0.2);
  EXPECT_EQ(codec->omega(tag(), g), 9);
}

}  // namespace
}  // namespace tern::test
