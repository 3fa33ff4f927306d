#include "tern/trainer/run/recipe.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tern/core/error.h"
#include "tern/networks/cifarnet.h"
#include "tern/networks/mlp.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

using namespace trainer;

TEST(Recipe, DecaysWhatTheModelLetsDecay) {
  networks::CifarNet model({.channels = 1, .height = 4, .width = 4});
  model.initialize(1);
  std::map<std::string, std::vector<float>> before;
  for (const auto& [name, parameter] : model.parameters()) before[name] = parameter->value().to_vector<float>();
  TrainSettings settings;
  settings.optimizer = UpdateRule::sgd;
  settings.lr = 0.5;
  settings.weight_decay = 0.5;
  for (const auto& [name, parameter] : model.parameters())
    parameter->set_gradient(Tensor::zeros_like(parameter->value()));
  make_optimizer(settings, model)->step();
  for (const auto& [name, parameter] : model.parameters()) {
    const auto now = parameter->value().to_vector<float>();
    const float kept = name == "fc1.weight" || name == "fc2.weight" ? 0.75f : 1;
    for (size_t i = 0; i < now.size(); ++i) ASSERT_FLOAT_EQ(now[i], kept * before[name][i]) << name;
  }
}

TEST(Recipe, GroupsHaveSettingsOfTheirOwn) {
  TrainSettings settings;
  settings.optimizer = UpdateRule::momentum;
  settings.lr = 0.5;
  settings.weight_decay = 0.5;
  settings.group = {"conv?.weight:lr=0.25,weight-decay=1", "*.bias:weight-decay=0.25"};
  networks::CifarNet model({.channels = 1, .height = 4, .width = 4});
  model.initialize(1);
  std::map<std::string, std::vector<float>> before;
  for (const auto& [name, parameter] : model.parameters()) {
    parameter->set_value(Tensor::full(parameter->value().shape(), 1));
    parameter->set_gradient(Tensor::zeros_like(parameter->value()));
  }
  make_optimizer(settings, model)->step();
  for (const auto& [name, parameter] : model.parameters()) {
    const double decay = name.ends_with("bias") ? 0.5 * 0.25 : name.starts_with("conv") ? 0.25 * 1 : 0.5 * 0.5;
    const bool decays =
        name.ends_with("bias") || name.starts_with("conv") || name.starts_with("fc1") || name.starts_with("fc2");
    EXPECT_EQ(parameter->value().to_vector<float>()[0], static_cast<float>(decays ? 1 - decay : 1)) << name;
  }
  settings.group = {"conv9*:lr=1"};
  EXPECT_EQ(message_of<InputError>([&] { make_optimizer(settings, model); }).substr(0, 41),
            "--group 'conv9*' has no parameters: no na");
}

// Muon is for the matrices inside the network, and AdamW for the rest. A group can choose.
TEST(Recipe, GivesMuonTheMatricesInsideANetwork) {
  TrainSettings settings;
  settings.optimizer = UpdateRule::muon;
  settings.group = {"conv2.weight:rule=sgd,lr=0.5"};
  networks::CifarNet model({.channels = 1, .height = 4, .width = 4});
  model.initialize(1);
  std::map<std::string, std::string> states;
  for (const auto& [name, tensor] : make_optimizer(settings, model)->state()) {
    const size_t dot = name.find('.');
    states[name.substr(dot + 1)] += name.substr(0, dot) + " ";
  }
  for (const auto& [name, parameter] : model.parameters()) {
    const bool inside = name == "conv1.weight" || name == "fc1.weight" || name == "fc2.weight";
    EXPECT_EQ(states[name], inside ? "momentum " : name == "conv2.weight" ? "" : "first second step ") << name;
  }
}

// AdamW's first step is its learning rate, whatever the gradient is.
TEST(Recipe, GivesAdamwBesideMuonItsOwnRate) {
  TrainSettings settings;
  settings.optimizer = UpdateRule::muon;
  settings.lr = 0.5;
  settings.adamw_lr = 0.125;
  settings.group = {"conv2.*:rule=adamw", "fc1.bias:lr=0.25"};
  networks::CifarNet model({.channels = 1, .height = 4, .width = 4});
  model.initialize(1);
  for (const auto& [name, parameter] : model.parameters()) {
    parameter->set_value(Tensor::full(parameter->value().shape(), 1));
    parameter->set_gradient(Tensor::full(parameter->value().shape(), 1));
  }
  make_optimizer(settings, model)->step();
  const auto value_of = [&](const std::string& wanted) {
    for (const auto& [name, parameter] : model.parameters())
      if (name == wanted) return parameter->value().to_vector<double>()[0];
    return 0.0;
  };
  for (const char* name : {"conv2.weight", "conv2.bias", "conv1.bias", "fc3.weight"})
    EXPECT_NEAR(value_of(name), 1 - 0.125, 1e-6) << name;
  EXPECT_NEAR(value_of("fc1.bias"), 1 - 0.25, 1e-6);
  settings.group = {"*.bias:momentum=0.5"};
  EXPECT_EQ(message_of<InputError>([&] { make_optimizer(settings, model); }),
            "--group: '*.bias', momentum: all of its parameters use adamw, which has none");
}

// Frozen parameters do not change what the others use.
TEST(Recipe, KeepsTheRuleOfAMatrixIfTheHeadIsFrozen) {
  TrainSettings settings;
  settings.optimizer = UpdateRule::muon;
  settings.group = {"fc3.*:lr=0.5"};
  networks::CifarNet model({.channels = 1, .height = 4, .width = 4});
  model.initialize(1);
  model.freeze("fc3.*");
  std::set<std::string> states;
  for (const auto& [name, tensor] : make_optimizer(settings, model)->state()) states.insert(name);
  EXPECT_TRUE(states.contains("momentum.fc2.weight"));
  EXPECT_FALSE(states.contains("first.fc3.weight"));
}

TEST(Recipe, RefusesAGroupOfFrozenParameters) {
  TrainSettings settings;
  settings.freeze = "fc3.*";
  settings.group = {"fc3.bias:lr=0.5"};
  networks::CifarNet model({.channels = 1, .height = 4, .width = 4});
  model.initialize(1);
  model.freeze("fc3.*");
  EXPECT_EQ(message_of<InputError>([&] { make_optimizer(settings, model); }),
            "--group: 'fc3.bias' has only parameters that --freeze freezes; if it is of the recipe, give groups "
            "without it");
  settings.group = {"fc?.bias:lr=0.5"};
  EXPECT_NO_THROW(make_optimizer(settings, model));
}

TEST(Recipe, EndsTheScheduleOfAGroup) {
  TrainSettings settings;
  settings.lr = 0.5;
  settings.lr_schedule = LrSchedule::poly;
  settings.lr_power = 1;
  settings.group = {"*.bias:lr=0.25,until=0.25", "conv1.weight:until=4"};
  networks::CifarNet model({.channels = 1, .height = 4, .width = 4});
  model.initialize(1);
  const auto schedules = make_group_schedules(settings, model, 8);
  ASSERT_EQ(schedules.size(), 4);  // both groups have a part that the model does not let decay
  const auto rates = [&](size_t group) {
    std::vector<double> found;
    for (int64_t t = 0; t < 5; ++t) found.push_back(schedules.at(group)(t));
    return found;
  };
  EXPECT_EQ(rates(0), (std::vector<double>{0.25, 0.125, 0, 0, 0}));
  EXPECT_EQ(rates(2), (std::vector<double>{0.5, 0.375, 0.25, 0.125, 0}));
  settings.group = {"*.bias:until=9"};
  EXPECT_EQ(message_of<InputError>([&] { make_group_schedules(settings, model, 8); }),
            "--group: found until=9, expected at most the run's 8 steps");
  settings.group = {"*.bias:until=2"};
  settings.warmup = 4;
  EXPECT_EQ(message_of<InputError>([&] { make_group_schedules(settings, model, 8); }),
            "--group: found until=2, expected --warmup's 4 steps or more");
  settings.warmup = 0.5;  // of the run, not of the group's part
  EXPECT_EQ(message_of<InputError>([&] { make_group_schedules(settings, model, 8); }),
            "--group: found until=2, expected --warmup's 4 steps or more");
  settings.group = {"*.bias:until=4"};
  const Schedule rising = make_group_schedules(settings, model, 8).at(0);
  EXPECT_EQ(rising(1), 0.375 * 2 / 4);
  EXPECT_EQ(rising(2), 0.25 * 3 / 4);
}

TEST(Recipe, LowersTheRateAtStepsOrSharesOfTheRun) {
  TrainSettings settings;
  settings.lr = 1;
  settings.lr_schedule = LrSchedule::step;
  const auto rates = [&](std::vector<double> at, int64_t steps) {
    settings.lr_steps = std::move(at);
    const Schedule schedule = make_schedule(settings, steps);
    std::vector<double> found;
    for (int64_t t = 0; t < steps; ++t) found.push_back(schedule(t));
    return found;
  };
  EXPECT_EQ(rates({2, 3}, 4), rates({0.5, 0.75}, 4));
  EXPECT_EQ(rates({0.3}, 5), rates({2}, 5));        // the step is rounded up
  EXPECT_EQ(rates({0.55}, 100), rates({55}, 100));  // although 0.55 * 100 is above 55 in binary
  EXPECT_EQ(rates({0.5, 0.75}, 1), (std::vector<double>{1}));
  settings.lr_factor = 0.25;
  EXPECT_EQ(rates({1, 2}, 3), (std::vector<double>{1, 0.25, 0.0625}));
}

TEST(Recipe, HoldsARateFirstOrRises) {
  TrainSettings settings;
  settings.lr = 0.5;
  settings.warmup = 4;
  EXPECT_EQ(make_schedule(settings, 8)(1), 0.25);
  EXPECT_THROW(make_schedule(settings, 3), InputError);  // a warm-up of 4 steps does not end within 3 steps
  settings.warmup = 0.5;                                 // of the run
  EXPECT_EQ(make_schedule(settings, 8)(1), 0.25);
  EXPECT_EQ(make_schedule(settings, 8)(4), 0.5);
  settings.warmup = 4;
  settings.warmup_lr = 0.125;
  EXPECT_EQ(make_schedule(settings, 8)(3), 0.125);
  EXPECT_EQ(make_schedule(settings, 8)(4), 0.5);
  EXPECT_EQ(make_schedule(settings, 3)(2), 0.125);
}

TEST(NoteOfBytes, SaysThatACodecSendsMoreThanFloats) {
  const auto note = [](const std::string& codec, int ranks, const std::string& exchange = "") {
    TrainSettings settings;
    settings.codec = codec;
    settings.exchange = exchange;
    networks::Mlp model({.widths = {100, 90, 10}});
    model.initialize(1);
    return note_of_bytes(settings, model, ranks);
  };
  for (const int ranks : {2, 4}) EXPECT_EQ(note("error-feedback:bf16", ranks), "") << ranks;
  // 100 · 90 + 2 · 90 + 90 · 10 + 10 elements
  EXPECT_EQ(
      note("error-feedback:bf16", 8),
      "for the whole model, --codec error-feedback:bf16 by allgather sends 141,120 bytes per rank on average. That "
      "is more than the 70,560 bytes of --codec none by ring");
  for (const char* codec : {"none", "bf16", "ternary", "qsgd:bits=4,bucket=512", "error-feedback:topk:ratio=0.001"})
    EXPECT_EQ(note(codec, 64), "") << codec;
  EXPECT_NE(note("hadamard:bits=4", 32), "");
  EXPECT_NE(note("none", 4, "allgather"), "");
}

}  // namespace
}  // namespace tern
