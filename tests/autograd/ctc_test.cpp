#include <gtest/gtest.h>

#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/core/safetensors.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern {
namespace {

/// PyTorch's answers. tests/golden/make_ctc.py writes them.
class CtcLoss : public testing::TestWithParam<const char*> {
 protected:
  Tensor of(const std::string& name) const { return golden.at(GetParam() + ("/" + name)); }
  CtcOptions options(LossReduction reduction) const {
    const auto numbers = of("options").to_vector<int64_t>();
    return {.input_lengths = of("input_lengths"),
            .label_lengths = of("label_lengths"),
            .blank = numbers[0],
            .reduction = reduction,
            .zero_infinity = numbers[1] == 1};
  }
  StateDict golden = read_safetensors(TERN_GOLDEN_DIR "/ctc.safetensors").tensors;
};

TEST_P(CtcLoss, AgreesWithPyTorch) {
  for (const auto& [reduction, name] : {std::pair{LossReduction::mean, "mean"}, std::pair{LossReduction::sum, "sum"}}) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      SCOPED_TRACE(join({name, " ", dtype}));
      const auto logits = Variable::leaf(of("logits").to(dtype));
      const Variable loss = ctc_loss(log_softmax(logits), of("labels"), options(reduction));
      EXPECT_EQ(loss.shape(), Shape{});
      const double expected = of(name).item();
      EXPECT_NEAR(loss.value().item(), expected, (dtype == DType::f64 ? 1e-12 : 1e-6) * expected);
      loss.backward();
      expect_values(logits.gradient(), of(std::string(name) + "/gradient").to_vector<double>(),
                    dtype == DType::f64 ? 1e-12 : 1e-5);
    }
  }
  const Variable each = ctc_loss(log_softmax(Variable(of("logits"))), of("labels"), options(LossReduction::none));
  expect_values(each.value(), of("none").to_vector<double>(), 1e-10);
}

INSTANTIATE_TEST_SUITE_P(Cases, CtcLoss, testing::Values("one", "batch", "blank_last", "no_path", "speech"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(CtcLossOptions, LengthsAreAllFramesAndLabelsUnlessGiven) {
  const Tensor x = Tensor::full({4, 2, 3}, -1, {.dtype = DType::f64}),
               labels = Tensor::from<int64_t>({2, 2}, std::vector<int64_t>{1, 2, 2, 2}),
               frames = Tensor::from<int64_t>({2}, std::vector<int64_t>{4, 4}),
               counts = Tensor::from<int64_t>({2}, std::vector<int64_t>{2, 2});
  EXPECT_EQ(ctc_loss(x, labels).value().item(),
            ctc_loss(x, labels, {.input_lengths = frames, .label_lengths = counts}).value().item());
}

TEST(CtcLossOptions, ABf16InputHasAnF32LossAndABf16Gradient) {
  const auto x = Variable::leaf(Tensor::full({4, 1, 3}, -1, {.dtype = DType::bf16}));
  const Variable loss = ctc_loss(x, Tensor::from<int64_t>({1, 1}, std::vector<int64_t>{1}));
  EXPECT_EQ(loss.value().dtype(), DType::f32);
  EXPECT_NEAR(loss.value().item(), 4 - std::log(10.0), 1e-5);  // 10 spans of the label
  loss.backward();
  EXPECT_EQ(x.gradient().dtype(), DType::bf16);
}

TEST(CtcLossOptions, NamesShapesThatDoNotFit) {
  const Tensor labels = Tensor::zeros({2, 2}, {DType::i64});
  EXPECT_EQ(message_of<Error>([&] {
              ctc_loss(Tensor::zeros({4, 3}), labels);
            }),
            "ctc_loss: log-probabilities of shape [4, 3], labels of shape [2, 2], expected [T, N, C] and [N, S]");
  EXPECT_EQ(message_of<Error>([&] {
              ctc_loss(Tensor::zeros({4, 3, 5}), labels);
            }),
            "ctc_loss: labels i64 of shape [2, 2], expected i64 [N, S] with N = 3");
  EXPECT_EQ(message_of<Error>([&] {
              ctc_loss(Tensor::zeros({4, 0, 5}), Tensor::zeros({0, 2}, {DType::i64}));
            }),
            "ctc_loss: log-probabilities of shape [4, 0, 5], expected one sequence or more to average over");
}

}  // namespace
}  // namespace tern
