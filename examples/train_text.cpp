// A language model of characters: each step predicts the next character of a text.
//
//   train_text --data-dir docs --iterations 600                      # an LSTM: 2.6 bits per character
//   train_text --data-dir docs --iterations 500 --model attention    # 3.2 bits per character

#include <tern/tern.h>
#include <tern/trainer/application.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

using namespace tern;

constexpr int64_t kLength = 128, kCharacters = 256;  // characters are bytes
constexpr int64_t kHeads = 4;                        // of the attention

/// The text of all pages (*.md) of a folder, in pieces of kLength characters. The last tenth is for testing.
class Text final : public Dataset {
 public:
  Text(const std::string& folder, Split split) : step_(split == Split::train ? kLength / 4 : kLength) {
    std::set<std::filesystem::path> pages;  // a set: sorted, so that all ranks read the same text
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".md") pages.insert(entry.path());
    for (const auto& page : pages) {
      std::ifstream file(page, std::ios::binary);
      text_.append(std::istreambuf_iterator<char>(file), {});
    }
    const size_t border = text_.size() / 10 * 9;
    text_ = split == Split::train ? text_.substr(0, border) : text_.substr(border);
    check_input(text_.size() > kLength, "--data-dir: ", folder, ": pages (*.md) of ", text_.size(),
                " bytes, expected more");
  }

  int64_t size() const override { return (std::ssize(text_) - kLength - 1) / step_ + 1; }
  std::vector<Field> fields() const override {
    return {{.name = "text", .dtype = DType::i64, .shape = {kLength}},
            {.name = "next", .dtype = DType::i64, .shape = {kLength}}};
  }
  Sample sample(int64_t index) const override {
    Sample sample;
    for (const char* field : {"text", "next"}) {
      const auto* from = text_.data() + index * step_ + (field == std::string_view("next"));
      std::vector<int64_t> characters;
      for (int64_t i = 0; i < kLength; ++i) characters.push_back(static_cast<unsigned char>(from[i]));
      sample.emplace(field, Tensor::from({kLength}, characters));
    }
    return sample;
  }

 private:
  std::string text_;
  int64_t step_;
};

/// Scores of all characters for each place of text, i64 [N, kLength]: [N, kLength, kCharacters]. It computes in
/// `precision`; the embedding gives f32.
struct LanguageModel : Module {
  Variable operator()(const Tensor& text, DType precision) {
    return run([&] { return out(features(convert(embed(text), precision))); });
  }
  virtual Variable features(const Variable& x) = 0;  // of x [N, kLength, width]

  explicit LanguageModel(int64_t width)
      : embed(add<Embedding>("embed", {.rows = kCharacters, .features = width})),
        out(add<Linear>("out", {.in = width, .out = kCharacters})) {}
  Embedding& embed;
  Linear& out;
};

struct LstmModel final : LanguageModel {
  explicit LstmModel(int64_t width)
      : LanguageModel(width), lstm(add<Lstm>("lstm", {.in = width, .hidden = width, .layers = 1})) {}
  Variable features(const Variable& x) override { return transpose(lstm(transpose(x, 0, 1)), 0, 1); }  // time first
  Lstm& lstm;
};

/// A block of a transformer with the normalisation first, as in GPT-2.
struct Block final : Layer {
  struct Options {
    int64_t width = 1;
  };
  explicit Block(const Options& options)
      : before(add<LayerNorm>("before", {.shape = {options.width}})),
        attention(add<MultiHeadAttention>("attention", {.features = options.width, .heads = kHeads, .causal = true})),
        between(add<LayerNorm>("between", {.shape = {options.width}})),
        up(add<Linear>("up", {.in = options.width, .out = 4 * options.width})),
        down(add<Linear>("down", {.in = 4 * options.width, .out = options.width})) {}
  Variable forward(const Variable& x) override {
    const Variable seen = x + attention(before(x));
    return seen + down(gelu(up(between(seen))));
  }
  LayerNorm& before;
  MultiHeadAttention& attention;
  LayerNorm& between;
  Linear &up, &down;
};

struct AttentionModel final : LanguageModel {
  explicit AttentionModel(int64_t width)
      : LanguageModel(width), places(add_parameter("places", {kLength, width}, normal(0.02))) {
    for (int i = 0; i < 2; ++i) blocks.push_back(&add<Block>("block" + std::to_string(i), {.width = width}));
    last = &add<LayerNorm>("last", {.shape = {width}});
  }
  Variable features(const Variable& x) override {
    Variable y = x + convert(places.variable(), x.value().dtype());
    for (Block* block : blocks) y = (*block)(y);
    return (*last)(y);
  }
  Parameter& places;
  std::vector<Block*> blocks;
  LayerNorm* last;
};

struct Prediction final : TaskFor<LanguageModel> {
  std::vector<DatasetEntry> datasets() const override { return {{.name = "text", .needs_folder = true, .load = load}}; }
  std::vector<Score> scores() const override {
    return {{.name = "bits per character", .unit = "", .higher_is_better = false}};
  }
  Forward loss(LanguageModel& model, const DeviceBatch& batch) const override {
    const Variable scores = model(batch["text"], batch.precision());
    const int64_t count = batch.size() * kLength;
    const Variable loss = cross_entropy(reshape(scores, {count, kCharacters}), batch["next"].reshape({count}));
    return {loss, {loss}};
  }
  std::vector<Ratio> count(std::span<const Tensor> outputs, const Batch& batch) const override {
    const auto characters = static_cast<double>(batch.size() * kLength);
    return {{outputs[0].item() / std::log(2.0) * characters, characters}};
  }

 private:
  static std::shared_ptr<const Dataset> load(const TrainSettings& settings, Split split) {
    return std::make_shared<Text>(settings.data_dir, split);
  }
};

std::unique_ptr<Module> make_model(const ModelSpec& spec) {
  const int64_t width = spec.counts.at("width");
  if (spec.choices.at("model") == "lstm") return std::make_unique<LstmModel>(width);
  check_input(width % kHeads == 0, "--width: found ", width, ", expected a multiple of ", kHeads,
              ", the heads of the attention");
  return std::make_unique<AttentionModel>(width);
}

int main(int argc, char** argv) {
  return train(argc, argv,
               {.name = "train_text",
                .model = make_model,
                .task = make_task<Prediction>,
                .defaults = {.batch_size = 32,
                             .optimizer = UpdateRule::adam,
                             .lr = 0.003,
                             .lr_schedule = LrSchedule::cosine,
                             .clip_norm = 1},
                .choices = {{.flag = "model", .values = {"lstm", "attention"}, .help = "Network"}},
                .counts = {{.flag = "width", .value = 192, .help = "Features of a character"}}});
}
