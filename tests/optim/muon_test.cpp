#include "tern/optim/muon.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/core/error.h"
#include "tern/optim/adam.h"
#include "tern/optim/sgd.h"
#include "tests/optim/two_parameters.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

/// A matrix whose values and gradients are those of tests/golden/make_optim.py.
class Matrix {
 public:
  explicit Matrix(const Shape& shape, DType dtype = DType::f64) : shape_(shape), dtype_(dtype) {
    w.set_value(tensor([](int64_t i) { return static_cast<double>(i) * 0.25 - 1; }));
  }

  void take_steps(Optimizer& optimizer, int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      w.set_gradient(tensor([=](int64_t i) { return static_cast<double>((7 * i + 3 * t) % 5 - 2) * 0.125; }));
      optimizer.step();
    }
  }
  std::vector<double> values() const { return w.value().to_vector<double>(); }
  std::vector<NamedParameter> parameters() { return {{"w", &w}}; }

  Parameter w;

 private:
  template <class Function>
  Tensor tensor(const Function& value) const {
    std::vector<double> values;
    for (int64_t i = 0; i < shape_.numel(); ++i) values.push_back(value(i));
    return Tensor::from<double>(shape_, values).to(dtype_);
  }

  Shape shape_;
  DType dtype_;
};

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance,
                 const std::string& name) {
  ASSERT_EQ(found.size(), expected.size()) << name;
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << name << ", element " << i;
}

// Four steps, computed by tests/golden/make_optim.py.
TEST(Muon, FollowsItsAuthorsCode) {
  struct Row {
    const char* name;
    Shape shape;
    Muon::Options options;
    std::vector<double> golden;
  };
  const Row rows[] = {
      {"wide",
       {2, 3},
       {.lr = 0.1, .momentum = 0.9},
       {-0.9252095172039557, -0.6169981066556948, -0.6003359879090814, -0.25442817691822667, -0.1277011965508764,
        0.3214885856570937}},
      {"tall",
       {3, 2},
       {.lr = 0.1, .momentum = 0.9},
       {-0.9739424726530215, -0.5649464741453781, -0.6061498743864301, -0.22907224487371153, -0.024923473123405857,
        0.3355670316192876}},
      {"plain",
       {2, 3},
       {.lr = 0.1, .momentum = 0.5, .nesterov = false, .iterations = 3},
       {-0.9347573368561344, -0.6217538341236387, -0.6091509348662043, -0.2993597000714969, -0.11101721425532936,
        0.2925090497378142}},
      {"decay",
       {2, 3},
       {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.5},
       {-0.7522646321284796, -0.4860274392591972, -0.49576704028249335, -0.2038002784659892, -0.12065614160800489,
        0.2623287706483183}},
      {"normalized",
       {2, 3},
       {.lr = 0.1, .momentum = 0.9, .iterations = 3, .normalizes_weights = true},
       {-0.9709009244765463, -0.6652127892358348, -0.6373199825100078, -0.2783676130510026, -0.12657120963315616,
        0.3321405601115026}},
  };
  for (const Row& row : rows)
    for (const auto& [dtype, tolerance] : {std::pair(DType::f64, 1e-12), std::pair(DType::f32, 2e-5)}) {
      Matrix matrix(row.shape, dtype);
      Muon muon(matrix.parameters(), row.options);
      matrix.take_steps(muon, 0, 4);
      expect_near(matrix.values(), row.golden, tolerance, row.name);
    }
}

TEST(Muon, MakesSingularValuesAboutOne) {
  std::vector<double> diagonal(4 * 6, 0.0);
  for (const auto& [row, value] : {std::pair(0, 3.0), std::pair(1, 1.0), std::pair(2, 0.4), std::pair(3, 0.1)})
    diagonal[static_cast<size_t>(row * 7)] = value;
  const auto found = orthogonal(Tensor::from<double>({4, 6}, diagonal), 5).to_vector<double>();
  for (size_t i = 0; i < found.size(); ++i)
    if (i % 7 == 0) {
      EXPECT_GT(found[i], 0.68) << i;
      EXPECT_LT(found[i], 1.14) << i;
    } else {
      EXPECT_EQ(found[i], 0) << i;
    }
}

// Filters are the matrix [out, in·kh·kw], in either format.
TEST(Muon, TakesFiltersAsAMatrix) {
  Matrix matrix({4, 12}, DType::f32);
  Muon of_matrix(matrix.parameters(), {.lr = 0.1});
  matrix.take_steps(of_matrix, 0, 3);
  for (const MemoryFormat format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
    Matrix filters({4, 3, 2, 2}, DType::f32);
    filters.w.set_value(filters.w.value().to(format));
    Muon of_filters(filters.parameters(), {.lr = 0.1});
    filters.take_steps(of_filters, 0, 3);
    expect_near(filters.values(), matrix.values(), 1e-5, to_string(format));
  }
}

TEST(Muon, ComputesInBf16) {
  Matrix exact({5, 8}, DType::f32), rough({5, 8}, DType::f32);
  Muon in_f32(exact.parameters(), {.lr = 0.1}), in_bf16(rough.parameters(), {.lr = 0.1, .arithmetic = DType::bf16});
  exact.take_steps(in_f32, 0, 3);
  rough.take_steps(in_bf16, 0, 3);
  expect_near(rough.values(), exact.values(), 0.02, "bf16");
  EXPECT_NE(rough.values(), exact.values());
}

TEST(Muon, GoesOnFromItsStateBitForBit) {
  Matrix whole({3, 2}, DType::f32), resumed({3, 2}, DType::f32);
  Muon first(whole.parameters(), {}), second(resumed.parameters(), {});
  whole.take_steps(first, 0, 3);
  second.load_state(first.state());
  resumed.w.set_value(whole.w.value().clone());
  whole.take_steps(first, 3, 6);
  resumed.take_steps(second, 3, 6);
  EXPECT_EQ(resumed.values(), whole.values());
}

TEST(Muon, LeavesParametersWithoutElementsAlone) {
  for (const Shape& shape : {Shape{0, 4}, Shape{4, 0}, Shape{0, 3, 2, 2}}) {
    Parameter w;
    w.set_value(Tensor::empty(shape));
    w.set_gradient(Tensor::empty(shape));
    Muon({{"w", &w}}, {.normalizes_weights = true}).step();
    EXPECT_EQ(w.value().shape(), shape);
  }
}

TEST(Muon, NamesAParameterWithoutAValue) {
  Parameter w;
  EXPECT_EQ(message_of<Error>([&] {
              Muon({{"fc.weight", &w}}, {});
            }),
            "muon: 'fc.weight' has no value yet; call initialize(seed) on the model first");
}

TEST(Muon, LeavesVectorsToAnotherRule) {
  TwoParameters model, vectors;
  EXPECT_EQ(message_of<Error>([&] { Muon(model.parameters(), {}); }),
            "muon: 'b' is [2], expected a matrix or filters; give the group of vectors another rule");
  const Adam::Options adam = {.decoupled = true};
  Muon muon({{.parameters = {{"a", &model.a}}},
             {.parameters = {{"b", &model.b}}, .settings = {.lr_scale = 0.5, .rule = Adam::rule(adam)}}},
            {.lr = 0.02});
  Adam alone({{"b", &vectors.b}}, {.lr = 0.01, .decoupled = true});
  for (int64_t t = 0; t < 3; ++t) {
    model.set_gradients(t);
    vectors.set_gradients(t);
    muon.step();
    alone.step();
  }
  EXPECT_EQ(model.b.value().to_vector<double>(), vectors.b.value().to_vector<double>());
  std::vector<std::string> names;
  for (const auto& [name, tensor] : muon.state()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"momentum.a", "first.b", "second.b", "step.b"}));
}

}  // namespace
}  // namespace tern
