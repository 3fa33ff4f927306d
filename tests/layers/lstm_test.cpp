#include "tern/layers/lstm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/core/error.h"
#include "tests/support/gradcheck.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern {
namespace {

using Inputs = std::vector<Variable>;

constexpr int64_t kSteps = 4, kBatch = 3, kIn = 2, kHidden = 3, kProjection = 2;

std::vector<Tensor> inputs(bool projected, bool peepholes) {
  const int64_t outputs = projected ? kProjection : kHidden;
  std::vector<Shape> shapes = {{kSteps, kBatch, kIn}, {4 * kHidden, kIn}, {4 * kHidden, outputs},
                               {4 * kHidden},         {kBatch, outputs},  {kBatch, kHidden}};
  if (projected) shapes.push_back({kProjection, kHidden});
  if (peepholes) shapes.push_back({3, kHidden});
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < shapes.size(); ++i)
    tensors.push_back(test::random_tensor(shapes[i], static_cast<uint32_t>(i)));
  return tensors;
}

LstmOutput run(const Inputs& in, bool projected, bool peepholes, const Tensor& lengths = {}) {
  return lstm(in[0],
              {.input = in[1],
               .recurrent = in[2],
               .bias = in[3],
               .projection = projected ? in[6] : Variable(),
               .peepholes = peepholes ? in.back() : Variable()},
              {.hidden = in[4], .cell = in[5]}, lengths);
}

const Tensor kLengths = Tensor::from<int64_t>({3}, {4, 1, 2});

TEST(Lstm, HasTheGradientsOfItsOutputsAndLastStates) {
  for (const bool projected : {false, true})
    for (const bool peepholes : {false, true})
      for (const Tensor& lengths : {Tensor(), kLengths}) {
        SCOPED_TRACE(testing::Message() << projected << peepholes << lengths.defined());
        test::expect_gradients(
            [&](const Inputs& in) {
              const LstmOutput found = run(in, projected, peepholes, lengths);
              return concat({reshape(found.y, {-1}), reshape(found.last.hidden, {-1}), reshape(found.last.cell, {-1})},
                            0);
            },
            inputs(projected, peepholes));
        test::expect_gradients([&](const Inputs& in) { return run(in, projected, peepholes, lengths).last.cell; },
                               inputs(projected, peepholes));
      }
}

// A padded batch gives what each sequence gives alone.
TEST(Lstm, ReadsEachSequenceToItsLength) {
  const std::vector<Tensor> tensors = inputs(true, true);
  const Inputs in(tensors.begin(), tensors.end());
  const LstmOutput all = run(in, true, true, kLengths);
  for (int64_t n = 0; n < kBatch; ++n) {
    const int64_t length = kLengths.span<int64_t>()[static_cast<size_t>(n)];
    Inputs one = in;
    one[0] = slice(slice(in[0], 1, n, n + 1), 0, 0, length);
    for (const size_t state : {4, 5}) one[state] = slice(in[state], 0, n, n + 1);
    const LstmOutput alone = run(one, true, true);
    const Variable y = slice(all.y, 1, n, n + 1);
    expect_values(slice(y, 0, 0, length).value(), alone.y.value().to_vector<double>());
    expect_values(slice(y, 0, length, kSteps).value(), Values(static_cast<size_t>((kSteps - length) * kProjection), 0));
    expect_values(slice(all.last.hidden, 0, n, n + 1).value(), alone.last.hidden.value().to_vector<double>());
    expect_values(slice(all.last.cell, 0, n, n + 1).value(), alone.last.cell.value().to_vector<double>());
  }
}

TEST(Lstm, ReadsNothingBehindASequencesEnd) {
  std::vector<Tensor> clean = inputs(false, false), dirty = clean;
  dirty[0] = clean[0].clone();
  for (int64_t t = 0; t < kSteps; ++t)
    for (int64_t n = 0; n < kBatch; ++n)
      if (t >= kLengths.span<int64_t>()[static_cast<size_t>(n)])
        dirty[0].slice(t, t + 1).reshape({kBatch, kIn}).slice(n, n + 1).fill(std::nan(""));
  const auto gradients = [](const std::vector<Tensor>& tensors) {
    std::vector<Parameter> parameters(tensors.size());
    Inputs in;
    for (size_t i = 0; i < tensors.size(); ++i) {
      parameters[i].set_value(tensors[i]);
      in.push_back(parameters[i].variable());
    }
    sum(run(in, false, false, kLengths).y).backward();
    std::vector<Values> found;
    for (const Parameter& parameter : parameters) found.push_back(parameter.gradient().to_vector<double>());
    return found;
  };
  EXPECT_EQ(gradients(dirty), gradients(clean));
}

TEST(Lstm, GoesOnFromItsLastState) {
  Lstm net({.in = 2, .hidden = 4, .projection = 3, .layers = 2, .peepholes = true});
  net.initialize(1, DType::f64);
  const Variable x = test::random_tensor({5, 3, 2}, 0);
  const Lstm::Output first = net(slice(x, 0, 0, 2), {}), rest = net(slice(x, 0, 2, 5), {}, first.last);
  expect_values(concat({first.y, rest.y}, 0).value(), net(x).value().to_vector<double>());
}

TEST(Lstm, NamesWhatDoesNotFit) {
  const std::vector<Tensor> tensors = inputs(false, false);
  const Inputs in(tensors.begin(), tensors.end());
  EXPECT_EQ(message_of<Error>([&] { lstm(in[0], {.input = in[2], .recurrent = in[2]}); }),
            "lstm: input of shape [4, 3, 2], weights of shapes [12, 3] and [12, 3], expected [T, N, I], [4·H, I] and "
            "[4·H, R]");
  EXPECT_EQ(message_of<Error>([&] { lstm(in[0], {.input = in[1], .recurrent = in[1]}); }),
            "lstm: recurrent weight of shape [12, 2], expected [12, 3] without a projection");
  struct Misfit {
    size_t input;
    DType dtype;
    const char* message;
  };
  for (const auto& [input, dtype, message] :
       {Misfit{4, DType::bf16, "lstm: initial hidden state is bf16 beside input of f64, expected f64"},
        {5, DType::i64, "lstm: initial cell is i64 beside input of f64, expected f64"},
        {2, DType::f32, "lstm: recurrent weight is f32 beside input of f64, expected f64"},
        {3, DType::f32, "lstm: bias is f32 beside input of f64, expected f64"},
        {0, DType::f32, "lstm: input weight is f64 beside input of f32, expected f32"},
        {0, DType::i64, "lstm: input is i64, expected f32, f64 or bf16"}}) {
    Inputs odd = in;
    odd[input] = in[input].value().to(dtype);
    EXPECT_EQ(message_of<Error>([&] { run(odd, false, false); }), message);
  }
  EXPECT_EQ(message_of<Error>([&] {
              run(in, false, false, Tensor::from<int64_t>({3}, {4, 5, 0}));
            }),
            "lstm: sequence 1 has length 5, expected 0 to 4");
  EXPECT_EQ(
      message_of<Error>([&] { Lstm({.in = 2, .hidden = 2, .projection = 2}); }),
      "Lstm: in 2, hidden 2, layers 1, projection 2, expected 1 or more, and a projection from 0 to below hidden");
}

}  // namespace
}  // namespace tern
