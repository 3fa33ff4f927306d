#include "tern/networks/lstm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/optim/sgd.h"

namespace tern {
namespace {

using networks::SpeechLstm, networks::SpeechRecognition;

TEST(SpeechLstm, HasTheParametersOfQsgdsNetworkSlow) {
  SpeechLstm lstm({});
  lstm.initialize(1);
  // Each layer: 4·1024·(in + 512 + 2 biases) + 1024·512 + 3·1024, with in = 363, 512 and 512; and 34·513.
  EXPECT_EQ(lstm.parameter_count(), 4096 * (363 + 2 * 512 + 3 * 512 + 3 * 2) + 3 * (1024 * 512 + 3 * 1024) + 34 * 513);
}

TEST(SpeechLstm, DoesNotHearThePaddingOfAShorterSequence) {
  SpeechLstm lstm({.in = 5, .hidden = 6, .projection = 4, .layers = 2, .classes = 3});
  lstm.initialize(1);
  const Tensor frames = Tensor::full({2, 7, 5}, 0.5), lengths = Tensor::from<int64_t>({2}, std::vector<int64_t>{7, 3});
  const Tensor both = lstm(frames, lengths).value();
  EXPECT_EQ(both.shape(), (Shape{7, 2, 3}));
  const Tensor alone = lstm(Tensor::full({1, 3, 5}, 0.5), Tensor::full({1}, 3, {DType::i64})).value();
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t c = 0; c < 3; ++c)
      EXPECT_FLOAT_EQ(both.data<float>()[(t * 2 + 1) * 3 + c], alone.data<float>()[t * 3 + c]);
}

TEST(SpeechRecognition, CountsPhoneErrorsByBestPathAndByBeam) {
  // Sequence 0: frames say 4, 4, blank, 7; the transcript is 4, 7. Sequence 1: frames say 9; the transcript is 9, 9, 1.
  constexpr int64_t kClasses = 34, kBlank = 33;
  const int64_t said[2][4] = {{4, 4, kBlank, 7}, {9, kBlank, 5, 5}};  // frames 1 to 3 of sequence 1 are padding
  Tensor log_probabilities = Tensor::full({4, 2, kClasses}, std::log(0.1 / 33));
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t t = 0; t < 4; ++t)
      log_probabilities.data<float>()[(t * 2 + n) * kClasses + said[n][t]] = static_cast<float>(std::log(0.9));
  const Batch batch(Tensor::from<int64_t>({2}, std::vector<int64_t>{0, 1}),
                    {{"frames", Tensor::zeros({2, 4, 363})},
                     {"frames.lengths", Tensor::from<int64_t>({2}, std::vector<int64_t>{4, 1})},
                     {"phones", Tensor::from<int64_t>({2, 3}, std::vector<int64_t>{4, 7, 0, 9, 9, 1})},
                     {"phones.lengths", Tensor::from<int64_t>({2}, std::vector<int64_t>{2, 3})}});
  const Tensor outputs[] = {log_probabilities};
  for (const int64_t beam : {1, 5}) {
    const std::vector<Ratio> errors = SpeechRecognition(beam).count(outputs, batch);
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].numerator, 2);
    EXPECT_EQ(errors[0].denominator, 5);
  }
}

TEST(SpeechRecognition, LearnsOneUtterance) {
  SpeechLstm lstm({.in = 4, .hidden = 16, .projection = 8, .layers = 1});
  lstm.initialize(1);
  const Tensor frames = Tensor::empty({1, 12, 4});
  for (int64_t i = 0; i < frames.numel(); ++i) frames.data<float>()[i] = static_cast<float>(i * i % 7) / 3 - 1;
  const Batch batch(Tensor::zeros({1}, {DType::i64}),
                    {{"frames", frames},
                     {"frames.lengths", Tensor::full({1}, 12, {DType::i64})},
                     {"phones", Tensor::from<int64_t>({1, 3}, std::vector<int64_t>{3, 3, 20})},
                     {"phones.lengths", Tensor::full({1}, 3, {DType::i64})}});
  const DeviceBatch on_device(batch, batch, DType::f32);
  const SpeechRecognition task;
  Sgd sgd(lstm.parameters(), {.lr = 0.1, .momentum = 0.9});
  double loss = 0;
  for (int step = 0; step < 200; ++step) {
    const Forward forward = task.loss(lstm, on_device);
    loss = forward.loss.value().item();
    forward.loss.backward();
    sgd.step();
    sgd.zero_gradients();
  }
  EXPECT_LT(loss, 0.1);
  const std::vector<Tensor> outputs = task.loss(lstm, on_device).values();
  EXPECT_EQ(task.count(outputs, batch)[0].numerator, 0);
}

}  // namespace
}  // namespace tern
