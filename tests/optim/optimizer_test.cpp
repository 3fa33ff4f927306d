#include "tern/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/layers/initialize.h"
#include "tern/optim/adam.h"
#include "tern/optim/muon.h"
#include "tern/optim/sgd.h"
#include "tests/optim/two_parameters.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"
#include "tests/support/parity.h"

namespace tern {
namespace {

using Make = std::function<std::unique_ptr<Optimizer>(TwoParameters&)>;

template <class Kind>
Make make(typename Kind::Options options, double clip_norm = 0) {
  return [=](TwoParameters& model) {
    auto optimizer = std::make_unique<Kind>(model.parameters(), options);
    optimizer->set_clip_norm(clip_norm);
    return optimizer;
  };
}

std::unique_ptr<Optimizer> make_groups(TwoParameters& model) {
  const std::vector<ParameterGroup> groups = {
      {.parameters = {{"a", &model.a}}},
      {.parameters = {{"b", &model.b}}, .settings = {.lr_scale = 0.5, .weight_decay = 0}}};
  return std::make_unique<Sgd>(groups, Sgd::Options{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05});
}

const std::map<std::string, Make> kOptimizers = {
    {"sgd", make<Sgd>({.lr = 0.1})},
    {"momentum", make<Sgd>({.lr = 0.1, .momentum = 0.9})},
    {"momentum_decay", make<Sgd>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05})},
    {"nesterov", make<Sgd>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05, .nesterov = true})},
    {"adam", make<Adam>({.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3})},
    {"adam_decay", make<Adam>({.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.05})},
    {"adamw",
     make<Adam>({.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.05, .decoupled = true})},
    {"clipped", make<Sgd>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05}, 0.25)},
    {"groups", make_groups},
};

// PyTorch's values after four steps, from tests/golden/make_optim.py.
const std::map<std::string, std::vector<double>> kGolden = {
    {"sgd", {-1.0, -0.725, -0.5125, -0.23750000000000002, -0.025, 0.25}},
    {"momentum", {-0.94915, -0.6935, -0.550975, -0.2497625, -0.0566125, 0.30085000000000006}},
    {"momentum_decay",
     {-0.90520041625, -0.6602368098437499, -0.5275247659375, -0.23862569859375, -0.056162092187500005,
      0.28867447515625}},
    {"nesterov",
     {-0.8964853679578749, -0.6303070803306718, -0.5263620098909686, -0.22230315173329684, -0.07487486410609374,
      0.27868086905157813}},
    {"adam",
     {-0.8526626110932123, -0.6143404463642895, -0.6555026708736995, -0.19547833115728996, -0.18037589944332355,
      0.3973373889067876}},
    {"adam_decay",
     {-0.7938445859823114, -0.4780584113377985, -0.6146507107438075, -0.18031031090653968, -0.17411802874766957,
      0.3728759099764261}},
    {"adamw",
     {-0.834730219719032, -0.6003060440554736, -0.6435402557652212, -0.19143108028272027, -0.1787468543313393,
      0.39045665606221797}},
    {"clipped",
     {-0.9291091624896082, -0.6833588531296321, -0.501017376222995, -0.24330355825980332, -0.030960832710461537,
      0.2647657289166419}},
    {"groups", {-0.90520041625, -0.6602368098437499, -0.5275247659375, -0.23862569859375, -0.02830625, 0.275425}},
};

void take_steps(TwoParameters& model, Optimizer& optimizer, int64_t first, int64_t last) {
  for (int64_t t = first; t < last; ++t) {
    model.set_gradients(t);
    optimizer.step();
  }
}

TEST(Optimizer, FollowsPyTorch) {
  for (const auto& [dtype, tolerance] : {std::pair(DType::f64, 1e-14), std::pair(DType::f32, 1e-6)}) {
    for (const auto& [name, make_optimizer] : kOptimizers) {
      TwoParameters model(dtype);
      const auto optimizer = make_optimizer(model);
      take_steps(model, *optimizer, 0, 4);
      const auto values = model.values();
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(values[i], kGolden.at(name)[i], tolerance) << name << " " << to_string(dtype) << ", element " << i;
    }
  }
}

TEST(Optimizer, GoesOnFromItsStateBitForBit) {
  for (const auto& [name, make_optimizer] : kOptimizers) {
    TwoParameters whole(DType::f32), resumed(DType::f32);
    const auto optimizer = make_optimizer(whole);
    take_steps(whole, *optimizer, 0, 3);
    const auto other = make_optimizer(resumed);
    other->load_state(optimizer->state());
    resumed.a.set_value(whole.a.value().clone());
    resumed.b.set_value(whole.b.value().clone());
    take_steps(whole, *optimizer, 3, 6);
    take_steps(resumed, *other, 3, 6);
    EXPECT_EQ(resumed.values(), whole.values()) << name;
  }
}

// A group's own settings give what an optimizer with these settings gives.
TEST(Optimizer, GroupsHaveMomentumRateAndDecayOfTheirOwn) {
  TwoParameters model, first, second;
  const std::vector<GroupRule> rules = {
      {.pattern = "b*", .settings = {.lr_scale = 0.25, .weight_decay = 0.5, .momentum = 0.75}},
      {.pattern = "*", .settings = {.momentum = 0}}};
  Sgd grouped(group_parameters(model.parameters(), rules), {.lr = 0.125, .momentum = 0.5, .weight_decay = 0.25});
  Sgd of_b(second.parameters(), {.lr = 0.125 * 0.25, .momentum = 0.75, .weight_decay = 0.5});
  Sgd of_a(first.parameters(), {.lr = 0.125, .weight_decay = 0.25});
  take_steps(model, grouped, 0, 4);
  take_steps(second, of_b, 0, 4);
  take_steps(first, of_a, 0, 4);
  EXPECT_EQ(model.a.value().to_vector<double>(), first.a.value().to_vector<double>());
  EXPECT_EQ(model.b.value().to_vector<double>(), second.b.value().to_vector<double>());
}

TEST(Optimizer, SetsTheRateOfOneGroupUntilTheNextOfAll) {
  TwoParameters model, still;
  const std::vector<ParameterGroup> groups = {{.parameters = {{"a", &model.a}}}, {.parameters = {{"b", &model.b}}}};
  Sgd sgd(groups, {.lr = 0.5});
  sgd.set_learning_rate(1, 0);
  take_steps(model, sgd, 0, 1);
  EXPECT_EQ(model.b.value().to_vector<double>(), still.b.value().to_vector<double>());
  EXPECT_NE(model.a.value().to_vector<double>(), still.a.value().to_vector<double>());
  sgd.set_learning_rate(0.5);
  take_steps(model, sgd, 1, 2);
  EXPECT_NE(model.b.value().to_vector<double>(), still.b.value().to_vector<double>());
  EXPECT_EQ(message_of<Error>([&] { sgd.set_learning_rate(2, 0.5); }), "optimizer: group 2, expected less than 2");
}

TEST(Optimizer, GroupsTakeEachParameterOnceAndLeaveTheRest) {
  TwoParameters model;
  const std::vector<GroupRule> rules = {{.pattern = "[a]", .settings = {.lr_scale = 2}}};
  const auto groups = group_parameters(model.parameters(), rules);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].parameters.at(0).name, "a");
  EXPECT_EQ(groups[0].settings.lr_scale, 2);
  EXPECT_EQ(groups[1].parameters.at(0).name, "b");
  EXPECT_EQ(groups[1].settings.lr_scale, 1);
  const std::vector<GroupRule> shadowed = {{.pattern = "*"}, {.pattern = "b"}};
  EXPECT_EQ(message_of<InputError>([&] { group_parameters(model.parameters(), shadowed); }),
            "group 'b' has no parameters: no name matches, or an earlier group has them; the model's last is 'b'");
  EXPECT_EQ(message_of<Error>([&] {
              Adam(std::vector<ParameterGroup>{{.parameters = model.parameters(), .settings = {.momentum = 0.5}}}, {});
            }),
            "adam: a group has momentum 0.5, expected none");
}

TEST(Optimizer, NamesItsState) {
  TwoParameters model;
  const auto names = [](Optimizer& optimizer) {
    std::string all;
    for (const auto& [name, tensor] : optimizer.state()) all += name + " ";
    return all;
  };
  EXPECT_EQ(names(*kOptimizers.at("sgd")(model)), "");
  EXPECT_EQ(names(*kOptimizers.at("momentum")(model)), "momentum.a momentum.b ");
  EXPECT_EQ(names(*kOptimizers.at("adam")(model)), "first.a first.b second.a second.b step.a step.b ");
}

TEST(Optimizer, RefusesAnotherModelsStateAndChangesNothing) {
  TwoParameters model;
  Sgd optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  take_steps(model, optimizer, 0, 1);
  const auto before = optimizer.state().at("momentum.a").to_vector<double>();
  const auto load = [&](std::vector<std::pair<std::string, Shape>> tensors) {
    StateDict state;
    for (const auto& [name, shape] : tensors) state.add(name, Tensor::zeros(shape, {.dtype = DType::f64}));
    return message_of<InputError>([&] { optimizer.load_state(state); });
  };
  EXPECT_EQ(load({{"momentum.a", {1, 4}}}),
            "load: no tensor named 'momentum.b', the optimizer expects one of shape [2]");
  EXPECT_EQ(load({{"momentum.a", {1, 4}}, {"momentum.b", {3}}}),
            "load: 'momentum.b' is f64 [3], the optimizer expects f64 [2]");
  EXPECT_EQ(load({{"momentum.a", {1, 4}}, {"momentum.b", {2}}, {"momentum.c", {5}}}),
            "load: 'momentum.c' of shape [5] is not in the optimizer");
  EXPECT_EQ(optimizer.state().at("momentum.a").to_vector<double>(), before);
}

TEST(Optimizer, LeavesAParameterWithoutGradientAsItIs) {
  TwoParameters model, untouched;
  Sgd optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  model.set_gradients(0);
  model.b.zero_gradient();
  optimizer.step();
  EXPECT_EQ(model.b.value().to_vector<double>(), untouched.b.value().to_vector<double>());
  EXPECT_NE(model.a.value().to_vector<double>(), untouched.a.value().to_vector<double>());
  optimizer.zero_gradients();
  EXPECT_FALSE(model.a.gradient().defined());
}

// As in state["step"] of torch.optim: b has a gradient only in steps 1, 2 and 4. It changes as if there were no other
// steps.
TEST(Optimizer, CountsTheStepsOfEachParameter) {
  for (const char* name : {"adam", "adam_decay", "adamw", "momentum_decay"})
    for (const DType dtype : {DType::f64, DType::f32}) {
      TwoParameters model(dtype), whole(dtype), fewer(dtype);
      const auto optimizer = kOptimizers.at(name)(model), of_whole = kOptimizers.at(name)(whole),
                 of_fewer = kOptimizers.at(name)(fewer);
      take_steps(whole, *of_whole, 0, 6);
      for (int64_t t = 0; t < 6; ++t) {
        const bool has_both = t == 1 || t == 2 || t == 4;
        if (has_both) take_steps(fewer, *of_fewer, t, t + 1);
        model.set_gradients(t);
        if (!has_both) model.b.zero_gradient();
        optimizer->step();
      }
      EXPECT_EQ(model.a.value().to_vector<double>(), whole.a.value().to_vector<double>()) << name;
      EXPECT_EQ(model.b.value().to_vector<double>(), fewer.b.value().to_vector<double>()) << name;
    }
}

TEST(Optimizer, LoadsOneCountOfStepsForAll) {
  TwoParameters model(DType::f32), other(DType::f32);
  const auto optimizer = kOptimizers.at("adam")(model), loaded = kOptimizers.at("adam")(other);
  take_steps(model, *optimizer, 0, 3);
  const auto state_with = [&](double count) {
    StateDict state;
    for (const auto& [name, tensor] : optimizer->state())
      if (!name.starts_with("step")) state.add(name, tensor.clone());
    state.add("step", Tensor::full({}, count, {.dtype = DType::i64}));
    return state;
  };
  loaded->load_state(state_with(3));
  EXPECT_EQ(loaded->state().at("step.a").item(), 3);
  EXPECT_EQ(loaded->state().at("step.b").item(), 3);
  EXPECT_EQ(message_of<InputError>([&] { loaded->load_state(state_with(-5)); }),
            "load: 'step.a' is -5, expected 0 or more");
}

TEST(Optimizer, BeginsNewStateForAParameterOfAnotherShape) {
  TwoParameters model;
  Sgd optimizer(model.parameters(), {.lr = 0.5, .momentum = 0.9});
  take_steps(model, optimizer, 0, 2);
  model.b.set_value(Tensor::full({1}, 1, {.dtype = DType::f64}));
  model.b.set_gradient(Tensor::full({1}, 1, {.dtype = DType::f64}));
  optimizer.step();
  EXPECT_EQ(model.b.value().item(), 0.5);

  TwoParameters other;
  Adam adam(other.parameters(), {.lr = 0.5, .epsilon = 1e-12});
  take_steps(other, adam, 0, 2);
  other.b.set_value(Tensor::full({1}, 1, {.dtype = DType::f64}));
  other.b.set_gradient(Tensor::full({1}, 1, {.dtype = DType::f64}));
  adam.step();
  EXPECT_NEAR(other.b.value().item(), 0.5, 1e-9) << "Adam's first step is its rate";
}

TEST(Optimizer, UpdatesAcrossMemoryFormats) {
  Parameter w;
  w.set_value(Tensor::zeros({1, 2, 1, 2}, {.format = MemoryFormat::channels_last}));
  w.set_gradient(Tensor::from<float>({1, 2, 1, 2}, std::vector<float>{1, 2, 3, 4}));
  Sgd({{"w", &w}}, {.lr = 1}).step();
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{-1, -2, -3, -4}));
}

TEST(Optimizer, ClipsByTheNormOverAllGroups) {
  const auto clipped = [](double max_norm) {
    TwoParameters model;
    const std::vector<ParameterGroup> groups = {{.parameters = {{"a", &model.a}}}, {.parameters = {{"b", &model.b}}}};
    Sgd optimizer(groups, {.lr = 1});
    optimizer.set_clip_norm(max_norm);
    const auto before = model.values();
    take_steps(model, optimizer, 0, 1);
    auto moved = model.values();
    double sum = 0;
    for (size_t i = 0; i < moved.size(); ++i) sum += (moved[i] - before[i]) * (moved[i] - before[i]);
    return std::sqrt(sum);
  };
  const double norm = clipped(0);
  EXPECT_GT(norm, 0.4);
  EXPECT_EQ(clipped(10), norm);
  EXPECT_NEAR(clipped(0.1), 0.1, 1e-6);
}

TEST(Optimizer, MeasuresTheNormOfAllGradientsBeforeClipping) {
  for (const double max_norm : {0.0, 1.0}) {
    TwoParameters model;
    const std::vector<ParameterGroup> groups = {{.parameters = {{"a", &model.a}}}, {.parameters = {{"b", &model.b}}}};
    Sgd optimizer(groups, {.lr = 1});
    optimizer.set_clip_norm(max_norm);
    const auto step_with = [&](double a, double b) {
      model.a.set_gradient(Tensor::zeros_like(model.a.value()));
      model.b.set_gradient(Tensor::zeros_like(model.b.value()));
      model.a.gradient().data<double>()[0] = a;
      model.b.gradient().data<double>()[0] = b;
      optimizer.step();
    };
    step_with(3, 4);
    EXPECT_EQ(optimizer.squared_gradient_norm().defined(), max_norm > 0) << "nobody asked for it";
    optimizer.measure_gradient_norm(true);
    step_with(3, 4);
    EXPECT_EQ(optimizer.squared_gradient_norm().item(), 25);
    optimizer.zero_gradients();
    optimizer.step();
    EXPECT_FALSE(optimizer.squared_gradient_norm().defined()) << "a step without gradients";
  }
}

TEST(Optimizer, RefusesWhatMakesNoSense) {
  TwoParameters model;
  const auto sgd = [&](const Sgd::Options& options) {
    return message_of<Error>([&] { Sgd(model.parameters(), options); });
  };
  EXPECT_EQ(sgd({.lr = -1}), "optimizer: learning rate -1, expected 0 or more");
  EXPECT_EQ(sgd({.lr = std::nan("")}), "optimizer: learning rate nan, expected 0 or more");
  EXPECT_EQ(sgd({.momentum = 1}), "sgd: momentum 1, expected [0, 1)");
  EXPECT_EQ(sgd({.weight_decay = -0.5}), "optimizer: weight decay -0.5, expected 0 or more");
  EXPECT_EQ(sgd({.nesterov = true}), "sgd: Nesterov's form needs momentum above 0");
  EXPECT_EQ(message_of<Error>([&] { Adam(model.parameters(), {.beta2 = 1}); }), "adam: beta 1, expected [0, 1)");
  EXPECT_EQ(message_of<Error>([&] {
              Sgd({{"a", &model.a}, {"b", &model.a}}, {});
            }),
            "optimizer: parameter 'b' is there twice");
  Sgd optimizer(model.parameters(), {});
  model.a.set_gradient(Tensor::zeros({4}, {.dtype = DType::f64}));
  EXPECT_EQ(message_of<Error>([&] { optimizer.step(); }),
            "optimizer: the gradient of 'a' is [4], the parameter [1, 4]");
  model.a.set_gradient(Tensor::zeros({1, 4}, {.dtype = DType::bf16}));
  EXPECT_EQ(message_of<Error>([&] { optimizer.step(); }), "optimizer: the gradient of 'a' is bf16, the parameter f64");
}

TEST(Optimizer, TakesOneWideDTypeInAGroup) {
  TwoParameters model;
  for (const DType dtype : {DType::bf16, DType::f32}) {
    model.set_gradients(0);
    model.b.set_value(model.b.value().to(dtype));
    model.b.set_gradient(Tensor::zeros({2}, {.dtype = dtype}));
    Sgd optimizer(model.parameters(), {});
    EXPECT_EQ(message_of<Error>([&] { optimizer.step(); }),
              join({"optimizer: 'b' is ", dtype, ", expected f32 or f64, the same in the whole group"}));
  }
}

TEST(Optimizer, ARuleAloneSetsNoRateAndNoDecay) {
  const std::string instead = "; set it in the optimizer's options, or in the group's settings as ";
  EXPECT_EQ(message_of<InputError>([] { Adam::rule({.lr = 1e-4, .weight_decay = 0.5}); }),
            "optimizer: a rule alone has no learning rate, found 0.0001" + instead + "lr_scale");
  EXPECT_EQ(message_of<InputError>([] { Sgd::rule({.weight_decay = 0.5}); }),
            "optimizer: a rule alone has no weight decay, found 0.5" + instead + "weight_decay");
  EXPECT_EQ(message_of<InputError>([] { Muon::rule({.lr = 0.5}); }),
            "optimizer: a rule alone has no learning rate, found 0.5" + instead + "lr_scale");
}

/// Filters and a vector on a device. Their gradients come in a format that an operation chose.
struct Filters {
  explicit Filters(Device device) {
    w.set_value(numbers({4, 3, 2, 3}, 0).to(device));
    b.set_value(numbers({4}, 1).to(device));
  }
  void take_steps(Optimizer& optimizer, MemoryFormat format) {
    for (int64_t t = 0; t < 3; ++t) {
      w.set_gradient(numbers({4, 3, 2, 3}, 10 + t).to(format).to(w.value().device()));
      b.set_gradient(numbers({4}, 20 + t).to(b.value().device()));
      optimizer.step();
    }
  }
  static Tensor numbers(const Shape& shape, int64_t seed) {
    const Tensor x = Tensor::empty(shape);
    normal(1)(x, RandomStream({.seed = static_cast<uint64_t>(seed)}));
    return x;
  }
  std::vector<NamedParameter> parameters() { return {{"w", &w}, {"b", &b}}; }

  Parameter w, b;
};

std::unique_ptr<Optimizer> make_for_filters(const std::string& name, Filters& model) {
  if (name.ends_with("muon"))
    return std::make_unique<Muon>(
        std::vector<ParameterGroup>{{.parameters = {{"w", &model.w}}},
                                    {.parameters = {{"b", &model.b}}, .settings = {.rule = Sgd::rule({})}}},
        Muon::Options{.lr = 0.1, .normalizes_weights = name == "normalized muon"});
  if (name == "adamw")
    return std::make_unique<Adam>(model.parameters(), Adam::Options{.weight_decay = 0.05, .decoupled = true});
  auto sgd = std::make_unique<Sgd>(model.parameters(),
                                   Sgd::Options{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05, .nesterov = true});
  if (name == "clipped") sgd->set_clip_norm(0.25);
  return sgd;
}

TEST(CudaOptimizer, WritesCopiesInItsUpdate) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  constexpr Device kCuda{DeviceType::cuda, 0};
  for (const char* name : {"nesterov", "clipped", "adamw", "muon", "normalized muon"})
    for (const MemoryFormat format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
      SCOPED_TRACE(testing::Message() << name << ", " << to_string(format));
      Filters copied(kCuda), plain(kCuda);
      copied.w.copy_for(Tensor::empty({1, 1, 1, 1}, {DType::bf16, kCuda, format}));
      copied.b.copy_for(Tensor::empty({1}, {DType::bf16, kCuda}));
      copy_parameters(std::vector{&copied.w, &copied.b});
      copied.take_steps(*make_for_filters(name, copied), format);
      plain.take_steps(*make_for_filters(name, plain), format);
      for (const auto& [with, without] : {std::pair(&copied.w, &plain.w), std::pair(&copied.b, &plain.b)}) {
        EXPECT_EQ(with->value().to_vector<float>(), without->value().to_vector<float>());
        const Tensor copy = with->current_copy();
        const bool written = with == &copied.b || format == MemoryFormat::channels_last;
        ASSERT_EQ(copy.defined(), written) << "it is written in the format of the value only";
        if (written) {
          EXPECT_EQ(copy.to_vector<float>(), with->value().to(DType::bf16).to_vector<float>());
        }
      }
    }
}

// A convolution gives the gradient of its filters in bf16. To the update it is the same as in f32.
TEST(CudaOptimizer, TakesNarrowGradients) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  constexpr Device kCuda{DeviceType::cuda, 0};
  const Tensor images = Filters::numbers({2, 3, 5, 5}, 7).to(DType::bf16).to(MemoryFormat::channels_last).to(kCuda);
  for (const char* name : {"nesterov", "clipped", "adamw", "muon"}) {
    SCOPED_TRACE(name);
    Filters narrow(kCuda), wide(kCuda);
    const auto of_narrow = make_for_filters(name, narrow), of_wide = make_for_filters(name, wide);
    for (int step = 0; step < 3; ++step) {
      for (const Filters* model : {&narrow, &wide}) {
        const Variable y = conv2d(Variable(images), model->w.variable(), model->b.variable(), {});
        y.backward(y.value().clone());
      }
      EXPECT_TRUE(narrow.w.narrow_gradient().defined());
      EXPECT_EQ(wide.w.gradient().dtype(), DType::f32);
      EXPECT_FALSE(wide.w.narrow_gradient().defined()) << "it was read";
      of_narrow->step();
      of_wide->step();
      EXPECT_TRUE(narrow.w.narrow_gradient().defined()) << "the update reads it as it is";
      narrow.w.zero_gradient();
      EXPECT_FALSE(narrow.w.gradient().defined());
      narrow.b.zero_gradient();
      for (Parameter* parameter : {&wide.w, &wide.b}) parameter->zero_gradient();
      EXPECT_EQ(narrow.w.value().to_vector<float>(), wide.w.value().to_vector<float>());
      EXPECT_EQ(narrow.b.value().to_vector<float>(), wide.b.value().to_vector<float>());
    }
  }
}

// On a GPU, filters and their states are channels-last.
TEST(CudaOptimizer, UpdatesFiltersAsTheCpu) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  constexpr Device kCuda{DeviceType::cuda, 0};
  for (const char* name : {"nesterov", "clipped", "adamw", "muon"})
    for (const MemoryFormat format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
      SCOPED_TRACE(testing::Message() << name << ", " << to_string(format));
      Filters here({}), there(kCuda), resumed(kCuda);
      const auto on_cpu = make_for_filters(name, here), on_cuda = make_for_filters(name, there);
      here.take_steps(*on_cpu, MemoryFormat::row_major);
      there.take_steps(*on_cuda, format);
      const auto expect_near = [](const Tensor& found, const Tensor& expected) {
        EXPECT_EQ(test::difference(found, expected, {1e-5, 1e-5}), "");
      };
      expect_near(there.w.value(), here.w.value());
      expect_near(there.b.value(), here.b.value());
      const StateDict expected = on_cpu->state();
      for (const auto& [state, tensor] : on_cuda->state()) {
        SCOPED_TRACE(state);
        if (tensor.rank() == 4) {
          EXPECT_EQ(tensor.format(), MemoryFormat::channels_last);
        }
        expect_near(tensor, expected.at(state));
      }
      // A state from the CPU continues on a GPU.
      const auto again = make_for_filters(name, resumed);
      resumed.w.value().copy_from(here.w.value());
      resumed.b.value().copy_from(here.b.value());
      again->load_state(expected);
      resumed.take_steps(*again, format);
      here.take_steps(*on_cpu, MemoryFormat::row_major);
      expect_near(resumed.w.value(), here.w.value());
    }
}

}  // namespace
}  // namespace tern
