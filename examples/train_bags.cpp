// Several labels for a sparse bag of words. A document is a row of a sparse matrix: which words it has, and how often.
// The first layer works on that row; no dense row of 5000 words is made.

#include <tern/tern.h>
#include <tern/trainer/application.h>

#include <map>

using namespace tern;

constexpr int64_t kWords = 5000, kTopics = 8, kWordsOfTopic = kWords / kTopics;

/// Generated documents about one to three topics: a pure function of seed, split and index.
class Documents final : public Dataset {
 public:
  Documents(uint64_t seed, Split split) : seed_(seed), split_(split) {}

  int64_t size() const override { return split_ == Split::train ? 8000 : 1000; }
  std::vector<Field> fields() const override {
    return {{.name = "words", .shape = {kWords}, .kind = FieldKind::sparse}, {.name = "topics", .shape = {kTopics}}};
  }

  Sample sample(int64_t index) const override {
    const RandomStream random({.seed = seed_,
                               .purpose = Purpose::application,
                               .owner = static_cast<uint32_t>(index),
                               .tensor = static_cast<uint32_t>(split_)});
    uint64_t draw = 0;
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random.below(draw++, static_cast<uint32_t>(n))); };
    Tensor topics = Tensor::zeros({kTopics});
    std::map<int64_t, float> counts;
    for (int64_t i = 1 + below(3); i > 0; --i) {
      const int64_t topic = below(kTopics);
      topics.data<float>()[topic] = 1;
      for (int word = 0; word < 20; ++word)  // three of four words are about the topic
        counts[below(4) > 0 ? topic * kWordsOfTopic + below(kWordsOfTopic) : below(kWords)] += 1;
    }
    std::vector<int64_t> words;
    std::vector<float> values;
    for (const auto& [word, count] : counts) {
      words.push_back(word);
      values.push_back(count);
    }
    const Shape shape = {std::ssize(words)};
    return {{"words", Tensor::from<int64_t>(shape, words)},
            {"words.values", Tensor::from<float>(shape, values)},
            {"topics", topics}};
  }

 private:
  uint64_t seed_;
  Split split_;
};

/// A perceptron whose first layer is sparse.
struct Reader final : Module {
  Variable operator()(const SparseRows& words, DType precision) {
    return run([&] { return out(relu(convert(bag(words.indices, words.offsets, words.values), precision))); });
  }
  EmbeddingBag& bag = add<EmbeddingBag>("bag", {.columns = kWords, .features = 32});
  Linear& out = add<Linear>("out", {.in = 32, .out = kTopics});
};

struct TopicLabels final : TaskFor<Reader> {
  std::vector<DatasetEntry> datasets() const override { return {{.name = "documents", .load = load}}; }
  std::vector<Score> scores() const override { return {{.name = "precision at 1"}, {.name = "right labels"}}; }
  Forward loss(Reader& model, const DeviceBatch& batch) const override {
    const Variable logits = model(batch.sparse("words"), batch.precision());
    return {binary_cross_entropy_with_logits(logits, batch["topics"]), {logits}};
  }
  std::vector<Ratio> count(std::span<const Tensor> outputs, const Batch& batch) const override {
    const auto logits = outputs[0].to_vector<float>(), topics = batch["topics"].to_vector<float>();
    double first = 0, right = 0;
    for (size_t row = 0; row < logits.size(); row += kTopics) {
      size_t best = row;
      for (size_t i = row; i < row + kTopics; ++i) {
        if (logits[i] > logits[best]) best = i;
        right += (logits[i] > 0) == (topics[i] == 1);
      }
      first += topics[best];
    }
    return {{first, static_cast<double>(batch.size())}, {right, static_cast<double>(logits.size())}};
  }

 private:
  static std::shared_ptr<const Dataset> load(const TrainSettings& settings, Split split) {
    return std::make_shared<Documents>(static_cast<uint64_t>(settings.seed), split);
  }
};

int main(int argc, char** argv) {
  return train(argc, argv,
               {.name = "train_bags",
                .model = [](const ModelSpec&) { return std::make_unique<Reader>(); },
                .task = make_task<TopicLabels>,
                .defaults = {.epochs = 2, .optimizer = UpdateRule::adam, .lr = 0.003}});
}
