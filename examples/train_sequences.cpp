// Classification of sequences whose lengths differ. A sample has frames of 12 numbers, as a recording has; in some of
// them a pattern sounds that belongs to the class.

#include <tern/tern.h>
#include <tern/trainer/application.h>

#include <algorithm>

using namespace tern;

constexpr int64_t kFeatures = 12, kClasses = 6;

/// Generated sequences: a pure function of seed, split and index.
class Melodies final : public Dataset {
 public:
  Melodies(uint64_t seed, Split split) : seed_(seed), split_(split) {}

  int64_t size() const override { return split_ == Split::train ? 8000 : 1000; }
  std::vector<Field> fields() const override {
    return {{.name = "frames", .shape = {kFeatures}, .kind = FieldKind::sequence},
            {.name = "weights", .kind = FieldKind::sequence},
            {.name = "label", .dtype = DType::i64}};
  }
  int64_t length(int64_t index) const override { return 5 + random(index).below(0, 36); }

  Sample sample(int64_t index) const override {
    const RandomStream noise = random(index);
    const int64_t frames = length(index), label = index % kClasses;
    Sample sample = {{"frames", Tensor::empty({frames, kFeatures})},
                     {"weights", Tensor::full({frames}, 1.0 / static_cast<double>(frames))},
                     {"label", Tensor::full({}, static_cast<double>(label), {.dtype = DType::i64})}};
    auto values = sample.at("frames").span<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = noise.normal(1000 + i);
    for (int64_t frame = 0; frame < frames; frame += 3)  // the pattern sounds in every third frame
      for (int64_t i = 0; i < kFeatures; ++i)
        values[static_cast<size_t>(frame * kFeatures + i)] += i % kClasses == label ? 1.5f : 0;
    return sample;
  }

 private:
  RandomStream random(int64_t index) const {
    return RandomStream({.seed = seed_,
                         .purpose = Purpose::application,
                         .owner = static_cast<uint32_t>(index),
                         .tensor = static_cast<uint32_t>(split_)});
  }

  uint64_t seed_;
  Split split_;
};

/// Looks at each frame, then takes the mean over the frames. It has two inputs, so it is a Module and not a Layer.
struct Listener final : Module {
  Variable operator()(const Variable& frames, const Variable& weights) {
    return run([&] {
      const int64_t n = frames.value().size(0), longest = frames.value().size(1);
      const Variable heard = reshape(look(reshape(frames, {n * longest, kFeatures})), {n, longest, 32});
      const Variable mean = matmul(reshape(weights, {n, 1, longest}), heard);  // padding has the weight 0
      return out(reshape(mean, {n, 32}));
    });
  }
  Linear& look = add<Linear>("look", {.in = kFeatures, .out = 32, .relu = true});
  Linear& out = add<Linear>("out", {.in = 32, .out = kClasses});
};

struct SequenceClassification final : TaskFor<Listener> {
  std::vector<DatasetEntry> datasets() const override {
    return {{.name = "melodies", .load = load, .groups_by_length = true}};
  }
  std::vector<Score> scores() const override { return {{.name = "accuracy"}}; }
  Forward loss(Listener& model, const DeviceBatch& batch) const override {
    const Variable logits = model(batch.input("frames"), batch.input("weights"));
    return {cross_entropy(logits, batch["label"]), {logits}};
  }
  std::vector<Ratio> count(std::span<const Tensor> outputs, const Batch& batch) const override {
    const Tensor logits = outputs[0].to(DType::f32);
    double right = 0;
    for (int64_t i = 0; i < batch.size(); ++i) {
      const auto row = logits.slice(i, i + 1).span<float>();
      right += std::ranges::max_element(row) - row.begin() == batch["label"].data<int64_t>()[i];
    }
    return {{right, static_cast<double>(batch.size())}};
  }

 private:
  static std::shared_ptr<const Dataset> load(const TrainSettings& settings, Split split) {
    return std::make_shared<Melodies>(static_cast<uint64_t>(settings.seed), split);
  }
};

int main(int argc, char** argv) {
  return train(argc, argv,
               {.name = "train_sequences",
                .model = [](const ModelSpec&) { return std::make_unique<Listener>(); },
                .task = make_task<SequenceClassification>,
                .defaults = {.epochs = 2, .lr = 0.05}});
}
