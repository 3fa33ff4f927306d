#include <gtest/gtest.h>

#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/linear.h"
#include "tern/trainer/run/recipe.h"
#include "tests/dist/comm/transports.h"
#include "tests/support/cuda.h"

namespace tern::test {
namespace {

using namespace trainer;

constexpr int kRanks = 2;
constexpr int64_t kImages = 8, kSteps = 12;

/// Two convolutions and a linear layer, for images [N, 2, 6, 6].
struct Net final : Layer {
  Variable forward(const Variable& x) override { return last(flatten(second(first(x)))); }
  Conv2d& first = add<Conv2d>("first", {.in = 2, .out = 6, .padding = 1, .relu = true});
  Conv2d& second = add<Conv2d>("second", {.in = 6, .out = 8, .relu = true});
  Linear& last = add<Linear>("last", {.in = 8 * 4 * 4, .out = 3});
};

/// Images that are brighter in the half, or in the channel, of their class.
struct Images {
  Images(int rank, int64_t step)
      : x(Tensor::empty({kImages, 2, 6, 6})), labels(Tensor::empty({kImages}, {.dtype = DType::i64})) {
    const RandomStream random({.seed = 4, .owner = static_cast<uint32_t>(rank), .step = static_cast<uint32_t>(step)});
    for (int64_t i = 0; i < x.numel(); ++i) {
      const int64_t image = i / 72, channel = i / 36 % 2, row = i / 6 % 6, label = image % 3;
      const bool bright = label == 2 ? channel == 1 : row / 3 == label;
      x.data<float>()[i] = 0.5F * random.normal(static_cast<uint64_t>(i)) + (bright ? 1.0F : 0.0F);
      labels.data<int64_t>()[image] = label;
    }
  }
  Tensor x, labels;
};

struct Way {
  const char* name;
  TrainSettings settings;
};

TrainSettings local_method(TrainingMethod method) {
  return {.optimizer = UpdateRule::momentum, .lr = 0.02, .method = method, .local_steps = 3};
}
TrainSettings averaging(const char* codec, const char* exchange = "") {
  return {.optimizer = UpdateRule::momentum, .lr = 0.02, .codec = codec, .exchange = exchange};
}

/// What ranks that all train the whole model can exchange.
std::vector<Way> ways() {
  TrainSettings streaming = local_method(TrainingMethod::diloco), muloco = streaming;
  streaming.fragments = 3;
  streaming.delay = 1;
  muloco.optimizer = UpdateRule::muon;
  TrainSettings sparseloco = local_method(TrainingMethod::sparseloco), demo = local_method(TrainingMethod::demo);
  sparseloco.codec = traits_of(TrainingMethod::sparseloco).codec;
  demo.optimizer = UpdateRule::sgd;
  demo.lr = 0.003;
  return {{"ternary", averaging("ternary")},
          {"hadamard", averaging("hadamard:bits=2")},
          {"powersgd", averaging("none", "powersgd:rank=2,start=2")},
          {"diloco", local_method(TrainingMethod::diloco)},
          {"streaming diloco", streaming},
          {"muloco", muloco},
          {"sparseloco", sparseloco},
          {"noloco", local_method(TrainingMethod::noloco)},
          {"demo", demo}};
}

struct Trained {
  StateDict before, after;
  double first_loss = 0, loss = 0;  ///< of the first and of the last step
  uint64_t payload = 0;
};

/// Trains on two ranks. Returns what each rank has in the end, when all have the same model.
std::vector<Trained> train(const TrainSettings& settings, MemoryFormat format, const char* frozen = nullptr,
                           Device device = {}) {
  std::vector<Trained> ranks(kRanks);
  const auto errors = with_communicators(make_in_process(kRanks), [&](Communicator& c) {
    Trained& rank = ranks[static_cast<size_t>(c.rank())];
    Net model;
    model.initialize(1, DType::f32, device);
    if (frozen) model.freeze(frozen);
    for (const auto& [name, tensor] : model.state()) rank.before.add(name, tensor.clone());
    const auto local = make_optimizer(settings, model);
    const auto method = make_method(settings, model, *local, &c, nullptr);
    for (int64_t step = 0; step < kSteps; ++step) {
      const Images images(c.rank(), step);
      method->begin_step(step);
      local->zero_gradients();
      const Tensor x = images.x.to(format).to(device);
      const Variable loss = cross_entropy(model(Variable(x)), images.labels.to(device));
      loss.backward();
      method->step();
      rank.loss = loss.value().to_vector<float>()[0];
      if (step == 0) rank.first_loss = rank.loss;
    }
    rank.payload = c.traffic().sent_payload;
    method->consolidate();
    rank.after = model.state();
  });
  EXPECT_EQ(errors, std::vector<std::string>(kRanks));
  return ranks;
}

std::vector<float> values(const StateDict& state, const std::string& name) { return state.at(name).to_vector<float>(); }

TEST(Methods, LeaveFrozenParametersAlone) {
  for (const auto& [name, settings] : ways()) {
    SCOPED_TRACE(name);
    const auto ranks = train(settings, MemoryFormat::row_major, "first.*");
    for (const Trained& rank : ranks)
      for (const auto& [tensor, value] : rank.after) {
        const bool frozen = tensor.starts_with("first.");
        EXPECT_EQ(value.to_vector<float>() == values(rank.before, tensor), frozen) << tensor;
        EXPECT_EQ(value.to_vector<float>(), values(ranks[0].after, tensor)) << tensor;
      }
    EXPECT_LT(ranks[0].payload, train(settings, MemoryFormat::row_major)[0].payload) << "frozen parameters travel";
  }
}

/// Expects the same model on both ranks, near that of `rows`. Convolutions may round differently in another format or
/// on another device. Then a code rounds a few elements to another level.
void expect_alike(const std::vector<Trained>& found, const std::vector<Trained>& rows) {
  double difference = 0, movement = 0;
  for (const auto& [tensor, value] : found[0].after) {
    EXPECT_EQ(value.to_vector<float>(), values(found[1].after, tensor)) << tensor;
    const auto own = value.to_vector<float>(), expected = values(rows[0].after, tensor),
               before = values(rows[0].before, tensor);
    for (size_t i = 0; i < own.size(); ++i) {
      difference += std::pow(own[i] - expected[i], 2);
      movement += std::pow(expected[i] - before[i], 2);
    }
  }
  EXPECT_LT(std::sqrt(difference / movement), 0.05);
}

TEST(Methods, TrainAlikeOnImagesInEitherMemoryFormat) {
  for (const auto& [name, settings] : ways()) {
    SCOPED_TRACE(name);
    const auto rows = train(settings, MemoryFormat::row_major);
    expect_alike(train(settings, MemoryFormat::channels_last), rows);
    EXPECT_LT(rows[0].loss, 0.95 * rows[0].first_loss);
  }
}

// On a GPU, filters and their gradients are channels-last.
TEST(CudaMethods, TrainFiltersAsTheCpu) {
  if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  for (const auto& [name, settings] : ways()) {
    SCOPED_TRACE(name);
    expect_alike(train(settings, MemoryFormat::channels_last, nullptr, {DeviceType::cuda, 0}),
                 train(settings, MemoryFormat::row_major));
  }
}

}  // namespace
}  // namespace tern::test
