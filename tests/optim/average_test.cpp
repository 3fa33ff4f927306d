#include "tern/optim/average.h"

#include <gtest/gtest.h>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tests/optim/two_parameters.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

/// Sets every element of the parameter.
void set(Parameter& w, double value) { w.set_value(Tensor::full({2}, value, {.dtype = DType::f64})); }

TEST(ParameterAverage, DecayWarmsUp) {
  Parameter w;
  set(w, 1);
  ParameterAverage average({{"w", &w}}, 0.15);
  set(w, 2);
  average.update();  // d = 1/10
  EXPECT_DOUBLE_EQ(average.state().at("average.w").to_vector<double>()[1], 0.1 * 1 + 0.9 * 2);
  set(w, 3);
  average.update();  // d = min(0.15, 2/11)
  EXPECT_DOUBLE_EQ(average.state().at("average.w").to_vector<double>()[1], 0.15 * 1.9 + 0.85 * 3);
}

TEST(ParameterAverage, SwapsInAndOut) {
  TwoParameters model;
  ParameterAverage average(model.parameters(), 0.999);
  const auto first = model.values();
  const Tensor changed = Tensor::full({2}, 7, {.dtype = DType::f64});
  model.b.set_value(changed);
  const auto trained = model.values();
  average.swap();
  EXPECT_EQ(model.values(), first);
  EXPECT_THROW(average.update(), Error);
  EXPECT_THROW(average.begin_update(), Error);
  EXPECT_THROW(average.issue_update(), Error);
  EXPECT_THROW(average.state(), Error);
  average.swap();
  EXPECT_EQ(average.state().at("updates").item(), 0);
  EXPECT_EQ(model.values(), trained);
  EXPECT_EQ(model.b.value().raw_data(), changed.raw_data());
}

// A graph may have saved the averages while they were swapped in.
TEST(ParameterAverage, AnUpdateIsAWriteThatAGraphNotices) {
  TwoParameters model;
  ParameterAverage average(model.parameters(), 0.5);
  average.swap();
  const Variable x = model.b.variable(), squares = sum(x * x);
  average.swap();
  average.update();
  EXPECT_NE(message_of<Error>([&] { squares.backward(); }).find("written to before backward"), std::string::npos);
}

TEST(ParameterAverage, NamesAParameterThatItCannotAverage) {
  Parameter w, unset;
  EXPECT_EQ(message_of<Error>([&] {
              ParameterAverage({{"unset", &unset}}, 0.5);
            }),
            "average: 'unset' has no value yet; call initialize(seed) on the model first");
  set(w, 1);
  ParameterAverage average({{"w", &w}}, 0.5);
  for (const Tensor& changed : {Tensor::full({16}, 9, {.dtype = DType::f64}), Tensor::full({2}, 9)}) {
    w.set_value(changed);
    const std::string message = join({"average: 'w' is now ", changed.dtype(), " ", changed.shape(),
                                      ", its average f64 [2]; make a new average of the changed model"});
    EXPECT_EQ(message_of<Error>([&] { average.update(); }), message);
    EXPECT_EQ(message_of<Error>([&] { average.swap(); }), message);
    EXPECT_EQ(w.value().raw_data(), changed.raw_data());
  }
  EXPECT_EQ(average.state().at("average.w").to_vector<double>(), (std::vector<double>{1, 1}));
  EXPECT_EQ(average.state().at("updates").to_vector<int64_t>(), std::vector<int64_t>{0});
}

TEST(ParameterAverage, GoesOnFromItsStateBitForBit) {
  TwoParameters model(DType::f32);
  ParameterAverage whole(model.parameters(), 0.9), resumed(model.parameters(), 0.9);
  const auto change = [&](double value) {
    model.b.set_value(Tensor::full({2}, value));
    whole.update();
  };
  change(0.1);
  change(0.7);
  resumed.load_state(whole.state());
  change(0.3);
  resumed.update();
  EXPECT_EQ(resumed.state().at("average.b").to_vector<float>(), whole.state().at("average.b").to_vector<float>());
  EXPECT_EQ(resumed.state().at("updates").item(), 3);
}

TEST(CudaParameterAverage, OfFiltersIsTheCpus) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  std::vector<double> first, second;
  for (int i = 0; i < 12; ++i) {
    first.push_back(i);
    second.push_back(i * i);
  }
  std::vector<std::vector<float>> found;  // on each device: the average, and what is swapped in
  for (const Device device : {Device{}, Device{DeviceType::cuda, 0}}) {
    const auto filters = [&](const std::vector<double>& values) {
      return Tensor::from<double>({2, 3, 2, 1}, values).to(DType::f32).to(device);
    };
    Parameter w;
    w.set_value(filters(first));
    ParameterAverage average({{"w", &w}}, 0.5);
    w.value().copy_from(filters(second));
    average.update();
    found.push_back(average.state().at("average.w").to_vector<float>());
    average.swap();
    found.push_back(w.value().to_vector<float>());
  }
  for (size_t i = 0; i < found[0].size(); ++i) EXPECT_NEAR(found[2][i], found[0][i], 1e-5) << i;
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[3], found[2]);
}

}  // namespace
}  // namespace tern
