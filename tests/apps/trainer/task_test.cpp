#include "tern/trainer/task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tern/autograd/functional.h"
#include "tern/layers/linear.h"
#include "tern/trainer/application.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/flags/command_line.h"
#include "tern/trainer/image_classification.h"
#include "tern/trainer/run/evaluation.h"
#include "tern/trainer/run/recipe.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

using namespace trainer;

TEST(Score, IsShownInItsUnit) {
  EXPECT_EQ((Score{.name = "accuracy"}.text(0.98765)), "98.77 %");
  EXPECT_EQ((Score{.name = "perplexity", .unit = ""}.text(12.5)), "12.5000");
  EXPECT_EQ((Score{.name = "error", .unit = "dB"}.text(0.25)), "0.2500 dB");
  EXPECT_EQ((Score{.name = "phone error rate"}.key()), "phone_error_rate");
}

TEST(Score, ReachesATargetThatItEquals) {
  const Score accuracy = {.name = "accuracy"}, error = {.name = "error", .higher_is_better = false};
  EXPECT_TRUE(accuracy.reaches(Ratio{3416, 8000}.value(), 42.7));  // 100 times this quotient is below 42.7
  EXPECT_TRUE(accuracy.reaches(Ratio{3417, 8000}.value(), 42.7));
  EXPECT_FALSE(accuracy.reaches(Ratio{3415, 8000}.value(), 42.7));
  EXPECT_TRUE(error.reaches(Ratio{7, 100}.value(), 7));  // 100 times this quotient is above 7
  EXPECT_TRUE(error.reaches(Ratio{6, 100}.value(), 7));
  EXPECT_FALSE(error.reaches(Ratio{8, 100}.value(), 7));
  const Score distance = {.name = "distance", .unit = "", .higher_is_better = false};
  EXPECT_TRUE(distance.reaches(3e6 * 1.1, 3.3e6));
  EXPECT_FALSE(distance.reaches(3.31e6, 3.3e6));
}

TEST(Score, HasANameOfItsOwn) {
  const auto message = [](const std::vector<Score>& scores) {
    return message_of<Error>([&] { check_scores(scores); });
  };
  EXPECT_EQ(message({{.name = "accuracy"}, {.name = "phone error rate"}}), "");
  EXPECT_EQ(message({}), "the task has no scores, expected one or more");
  for (const std::vector<Score>& scores : {std::vector<Score>{{.name = "loss"}},
                                           {{.name = "reached target"}},
                                           {{.name = ""}},
                                           {{.name = "a b"}, {.name = "a_b"}}})
    EXPECT_NE(message(scores).find("expected names that differ from each other"), std::string::npos);
}

TEST(Ratio, AddsPartByPart) {
  Ratio sum{1, 4};
  sum += {3, 4};
  EXPECT_EQ(sum.value(), 0.5);
  EXPECT_EQ(Ratio().value(), 0);
}

/// A line through the points (x, y).
struct Line final : Module {
  Variable operator()(const Variable& x) {
    return run([&] { return fc(x); });
  }
  Linear& fc = add<Linear>("fc", {.in = 1, .out = 1});
};

/// Scores: the mean distance, and the share of points that are within 0.5.
struct LineTask : TaskFor<Line> {
  std::vector<DatasetEntry> datasets() const override {
    return {{.name = "points", .load = load}, {.name = "no-points", .load = [](const TrainSettings&, Split) {
                                                 return std::make_shared<TensorDataset>(points(0));
                                               }}};
  }
  std::vector<Score> scores() const override {
    return {{.name = "distance", .unit = "", .higher_is_better = false}, {.name = "near points"}};
  }
  Forward loss(Line& model, const DeviceBatch& batch) const override {
    const Variable y = model(batch.input("x"));
    return {mse(y, batch.input("y").value()), {y}};
  }
  std::vector<Ratio> count(std::span<const Tensor> outputs, const Batch& batch) const override {
    Ratio distance, near;
    for (int64_t i = 0; i < batch.size(); ++i) {
      const double found = std::abs(outputs[0].data<float>()[i] - batch["y"].data<float>()[i]);
      distance += {found, 1};
      near += {found <= 0.5 ? 1.0 : 0.0, 1};
    }
    return {distance, near};
  }

  /// y = 0, 1, 2, ... at x = 0.
  static NamedTensors points(int64_t n) {
    Tensor y = Tensor::empty({n, 1});
    for (int64_t i = 0; i < n; ++i) y.data<float>()[i] = static_cast<float>(i);
    return {{"x", Tensor::zeros({n, 1})}, {"y", y}};
  }
  static std::shared_ptr<const Dataset> load(const TrainSettings&, Split) {
    return std::make_shared<TensorDataset>(points(7));
  }
};

/// A line that gives 0 everywhere.
std::unique_ptr<Line> zero_line() {
  auto line = std::make_unique<Line>();
  line->initialize(1);
  for (const auto& [name, parameter] : line->parameters()) parameter->value().fill(0);
  return line;
}

TEST(Task, AnEvaluationAddsUnequalBatches) {
  const TensorDataset data(LineTask::points(7));
  const auto line = zero_line();
  for (const int64_t batch_size : {1, 3, 7}) {
    DataLoader loader(data, {.size = 7}, {.batch_size = batch_size, .drop_last = false});
    const auto found = evaluate(*line, LineTask(), loader, {}, "now", [] { return false; });
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->samples, 7);
    EXPECT_NEAR(found->loss(), (0 + 1 + 4 + 9 + 16 + 25 + 36) / 7.0, 1e-6) << batch_size;
    EXPECT_EQ(found->values(), (std::vector<double>{3, 1 / 7.0})) << batch_size;
  }
}

TEST(Task, NamesTheSampleAndFieldThatAreNotFinite) {
  NamedTensors points = LineTask::points(3);
  points.at("x").data<float>()[1] = NAN;
  const TensorDataset data(points);
  DataLoader loader(data, {.size = 3}, {.batch_size = 3, .name = "points, test"});
  const auto line = zero_line();
  EXPECT_EQ(
      message_of<InputError>([&] { evaluate(*line, LineTask(), loader, {}, "after step 5", [] { return false; }); }),
      "the loss is nan after step 5; data set 'points, test', sample 1: field 'x' has the value nan, expected finite "
      "numbers");
}

// Row 1 of the sparse field has no element, so its second element is of the third sample.
TEST(Task, NamesTheSampleOfASparseValueThatIsNotFinite) {
  const Batch batch(Tensor::from<int64_t>({3}, {40, 12, 7}),
                    {{"words.indices", Tensor::from<int64_t>({2}, {0, 1})},
                     {"words.offsets", Tensor::from<int64_t>({4}, {0, 1, 1, 2})},
                     {"words.values", Tensor::from<float>({2}, {1, INFINITY})}});
  const auto line = zero_line();
  EXPECT_EQ(
      message_of<InputError>([&] {
        check_finite(INFINITY, "at step 5", *line, LineTask(), DeviceBatch(batch, batch, DType::f32, "own"));
      }),
      "the loss is infinite at step 5; data set 'own', sample 7: field 'words.values' has the value inf, expected "
      "finite numbers");
}

TEST(Task, NamesTheSampleThatDoesNotFit) {
  struct Crooked final : Dataset {
    int64_t size() const override { return 4; }
    std::vector<Field> fields() const override { return {{.name = "x", .shape = {1}}, {.name = "y", .shape = {1}}}; }
    Sample sample(int64_t index) const override {
      return {{"x", Tensor::zeros({index == 2 ? 3 : 1})}, {"y", Tensor::zeros({1})}};
    }
  } data;
  TrainSettings settings;
  settings.datasets = {{.name = "crooked", .load = LineTask::load}};
  settings.data = "crooked";
  const auto loader = make_test_loader(settings, data, Team(nullptr));
  EXPECT_EQ(message_of<InputError>([&] { loader->next(); }),
            "data set 'crooked, test', sample 2: field 'x' has shape [3], expected [1]");
}

TEST(Task, IsEvaluatedOnBatchesOfSimilarLengthIfItsSetAsksForIt) {
  struct Ragged final : Dataset {
    int64_t size() const override { return 9; }
    std::vector<Field> fields() const override { return {{.name = "x", .kind = FieldKind::sequence}}; }
    int64_t length(int64_t index) const override { return 1 + 5 * index % 9; }
    Sample sample(int64_t index) const override { return {{"x", Tensor::zeros({length(index)})}}; }
  } data;
  TrainSettings settings;
  settings.data = "ragged";
  settings.eval_batch_size = 3;
  const auto padded = [&](bool groups) {
    settings.datasets = {{.name = "ragged", .load = LineTask::load, .groups_by_length = groups}};
    const auto loader = make_test_loader(settings, data, Team(nullptr));
    std::vector<int64_t> longest;
    int64_t samples = 0;
    while (const auto batch = loader->next()) {
      longest.push_back((*batch)["x"].size(1));
      samples += batch->size();
    }
    EXPECT_EQ(samples, 9);
    return longest;
  };
  EXPECT_EQ(padded(false), (std::vector<int64_t>{6, 8, 9}));
  EXPECT_EQ(padded(true), (std::vector<int64_t>{3, 6, 9}));
}

TEST(Task, RefusesAModelOfAnotherType) {
  Linear other({.in = 1, .out = 1});
  other.initialize(1);
  const Batch batch(Tensor::zeros({1}, {.dtype = DType::i64}), LineTask::points(1));
  EXPECT_NE(message_of<Error>([&] {
              LineTask().forward(other, {batch, batch, DType::f32});
            }).find("not of the type that its task trains"),
            std::string::npos);
}

TEST(Task, HasAsManyCountsAsScores) {
  struct Wrong final : TaskFor<Line> {
    std::vector<DatasetEntry> datasets() const override { return {}; }
    std::vector<Score> scores() const override { return {{.name = "a"}, {.name = "b"}}; }
    Forward loss(Line&, const DeviceBatch&) const override { return {}; }
    std::vector<Ratio> count(std::span<const Tensor>, const Batch&) const override { return {{1, 1}}; }
  };
  EXPECT_NE(message_of<Error>([&] { count_scores(Wrong(), {}, {}); }).find("counts 1 scores and names 2"),
            std::string::npos);
}

TEST(DeviceBatch, GivesInputsInTheDtypeOfActivations) {
  const Batch batch(Tensor::zeros({2}, {.dtype = DType::i64}),
                    {{"x", Tensor::full({2, 1}, 0.5, {.dtype = DType::f64})}, {"y", Tensor::zeros({2, 1})}});
  const DeviceBatch given(batch, batch, DType::bf16);
  EXPECT_EQ(given.input("x").value().dtype(), DType::bf16);
  EXPECT_EQ(given.input("x").value().to_vector<float>(), (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(given.input("x", DType::f64).value().dtype(), DType::f64);
  EXPECT_EQ(given["y"].dtype(), DType::f32);
  const Batch whole(Tensor::zeros({2}, {.dtype = DType::i64}), {{"x", Tensor::zeros({2, 1}, {.dtype = DType::i64})}});
  EXPECT_EQ(message_of<InputError>([&] { DeviceBatch(whole, whole, DType::f32, "rows").input("x"); }),
            "data set 'rows', sample 0: field 'x' has elements of i64, expected f32 or f64 as input of the model");
  EXPECT_FALSE(given.has("z"));
  EXPECT_NE(message_of<Error>([&] { given["z"]; }).find("'z'"), std::string::npos);
}

Application line_application() {
  return {.name = "train_line",
          .model =
              [](const ModelSpec& spec) {
                spec.field("x");
                return std::make_unique<Line>();
              },
          .task = make_task<LineTask>};
}

Invocation read_words(const Application& application, std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  return read_flags(static_cast<int>(words.size()), words.data(), application);
}

TEST(Application, OffersTheDataSetsOfItsTask) {
  const Application application = line_application();
  EXPECT_EQ(read_words(application, {}).settings.data, "points");
  const std::string help = read_words(application, {"--help"}).text;
  EXPECT_NE(help.find("--data points|no-points "), std::string::npos) << help;
  EXPECT_EQ(message_of<InputError>([&] {
              read_words(application, {"--data", "digits"});
            }),
            "--data: found 'digits', expected points|no-points");
  const TrainSettings empty = read_words(application, {"--data", "no-points"}).settings;
  EXPECT_EQ(message_of<InputError>([&] { load_run_data(empty); }), "--data no-points: the training set has no samples");
}

TEST(Application, ShowsDefaultsInOnePairOfBrackets) {
  Application application = line_application();
  application.defaults.lr_steps = {0.5, 0.75};
  application.defaults.lr_factor = 0.25;
  const std::string help = read_words(application, {"--help"}).text;
  EXPECT_NE(help.find(" shares of the run [0.5,0.75]\n"), std::string::npos) << help;
  EXPECT_NE(help.find(" at each of --lr-steps [0.25]\n"), std::string::npos) << help;
}

TEST(Application, ItsTaskLivesAsLongAsItsDataSets) {
  /// Its sets read a member, and its constructor reads a flag of the application.
  struct Owner final : LineTask {
    explicit Owner(int64_t size) : size_(size) {}
    std::vector<DatasetEntry> datasets() const override {
      return {{.name = "own",
               .load = [this](const TrainSettings&, Split) { return std::make_shared<TensorDataset>(points(size_)); }}};
    }
    int64_t size_;
  };
  Application application = line_application();
  application.counts = {{.flag = "points", .value = 3, .help = "Number of points"}};
  application.task = [](const TrainSettings& s) { return std::make_unique<Owner>(s.counts.at("points")); };
  EXPECT_EQ(load_run_data(read_words(application, {}).settings).training->size(), 3);
  EXPECT_EQ(load_run_data(read_words(application, {"--points", "5"}).settings).training->size(), 5);
}

TEST(Application, RefusesAnOfferThatIsNotClear) {
  const auto message = [](const Application& application) {
    return message_of<Error>([&] { read_words(application, {}); });
  };
  Application application = line_application();
  application.datasets = {{.name = "points", .load = LineTask::load}};
  EXPECT_EQ(message(application), "the application offers two data sets 'points'");
  application.datasets = {{.name = "other", .load = {}}};
  EXPECT_EQ(message(application), "the data set 'other' has no `load`");
  application.datasets = {};
  application.defaults.data = "pionts";
  EXPECT_EQ(message(application), "the default data set 'pionts' is none of points|no-points");
  application = line_application();
  application.choices = {{.flag = "kind", .values = {}, .help = ""}};
  EXPECT_EQ(message(application), "the application's choice --kind has no values");
  application.choices = {{.flag = "shuffle", .values = {"a"}, .help = ""}};
  EXPECT_EQ(message(application), "the application has a flag --shuffle, but there is another flag of this name");
  application.choices = {};
  application.counts = {{.flag = "--hidden", .value = 1, .help = ""}};
  EXPECT_EQ(message(application), "the application's flag '--hidden' has dashes, expected its name without them");
}

TEST(Application, ARecipeChangesDefaultsAndFlagsOverruleIt) {
  Application application = line_application();
  application.defaults.iterations = 1000;
  application.recipes = {{.name = "swift",
                          .help = "short",
                          .change =
                              [](TrainSettings& s) {
                                s.iterations.reset();
                                s.epochs = 3;
                                s.lr_schedule = LrSchedule::step;
                                s.lr_steps = {0.5};
                              }},
                         {.name = "slow", .help = "long", .change = [](TrainSettings& s) { s.iterations = 2000; }}};
  const auto read = [&](const std::vector<const char*>& words) { return read_words(application, words); };
  EXPECT_EQ(read({}).settings.iterations, 1000);
  EXPECT_EQ(read({"--recipe", "slow"}).settings.iterations, 2000);
  for (const auto& words : {std::vector<const char*>{"--recipe", "swift"}, {"--recipe=swift"}}) {
    const TrainSettings settings = read(words).settings;
    EXPECT_EQ(settings.epochs, 3);
    EXPECT_FALSE(settings.iterations.has_value());
    EXPECT_EQ(settings.lr_schedule, LrSchedule::step);
  }
  EXPECT_EQ(read({"--epochs", "7", "--recipe", "swift"}).settings.epochs, 7);
  // A default of the recipe that another flag makes useless is not refused: the user did not give it.
  EXPECT_EQ(read({"--recipe", "swift", "--lr-schedule", "constant"}).settings.lr_schedule, LrSchedule::constant);

  const auto message = [&](const std::vector<const char*>& words) {
    return message_of<InputError>([&] { read(words); });
  };
  EXPECT_EQ(message({"--recipe", "fast"}), "--recipe: found 'fast', expected swift|slow");
  EXPECT_EQ(message({"--recipe"}), "--recipe: found nothing after it, expected swift|slow");
  EXPECT_EQ(message({"--recipe", "--epochs", "7"}), "--recipe: found the flag '--epochs', expected swift|slow");
  EXPECT_EQ(message({"--recipe", "slow", "--recipe", "swift"}), "--recipe: given twice, expected once");
  EXPECT_NE(read({"--help"}).text.find("Other defaults. swift: short; slow: long"), std::string::npos);
  application.recipes.clear();
  EXPECT_NE(message({"--recipe", "swift"}).find("--recipe"), std::string::npos);
}

TEST(Application, RefusesNothingInPlaceOfDataOrModels) {
  Application application = line_application();
  application.datasets = {{.name = "none", .load = [](const TrainSettings&, Split) { return nullptr; }}};
  EXPECT_EQ(message_of<Error>([&] {
              load_run_data(read_words(application, {"--data", "none"}).settings);
            }),
            "the data set 'none': `load` returned no data set");
  application.model = [](const ModelSpec&) { return nullptr; };
  EXPECT_EQ(message_of<Error>([&] { make_model(application, read_words(application, {}).settings, nullptr); }),
            "train_line: `model` returned no model");
}

// Labels that are no class are the user's fault: the message names the data set, and the sample if there is one label
// for each.
TEST(ForwardPass, NamesTheSampleOfALabelThatIsNoClass) {
  struct Classifier final : Layer {
    Variable forward(const Variable& x) override { return x; }
  };
  struct Classification final : TaskFor<Classifier> {
    std::vector<DatasetEntry> datasets() const override { return {}; }
    std::vector<Score> scores() const override { return {{.name = "accuracy"}}; }
    Forward loss(Classifier& model, const DeviceBatch& batch) const override {
      return {cross_entropy(model(batch.input("x")), batch["y"]), {}};
    }
    std::vector<Ratio> count(std::span<const Tensor>, const Batch&) const override { return {{1, 0}}; }
  };
  Classifier model;
  const auto message = [&](const Tensor& x, const Tensor& y) {
    const Batch batch(Tensor::from<int64_t>({2}, {40, 12}), {{"x", x}, {"y", y}});
    return message_of<InputError>(
        [&] { forward_pass(Classification(), model, DeviceBatch(batch, batch, DType::f32, "own, training")); });
  };
  EXPECT_EQ(message(Tensor::zeros({2, 3}), Tensor::from<int64_t>({2}, {2, 7})),
            "data set 'own, training', sample 12: label 7, expected 0 to 2 for 3 classes");
  EXPECT_EQ(message(Tensor::zeros({2, 3, 2}), Tensor::from<int64_t>({2, 2}, {2, 7, 0, 0})),
            "data set 'own, training': cross_entropy: row 1 has label 7, expected 0 to 2 for 3 classes");
}

TEST(Application, NamesTheFieldsThatDiffer) {
  Application application = line_application();
  application.datasets = {{.name = "odd", .load = [](const TrainSettings&, Split split) {
                             NamedTensors points = LineTask::points(4);
                             if (split == Split::test) points.at("y") = points.at("y").to(DType::f64);
                             return std::make_shared<TensorDataset>(points);
                           }}};
  const TrainSettings settings = read_words(application, {"--data", "odd"}).settings;
  EXPECT_EQ(message_of<InputError>([&] { load_run_data(settings); }),
            "--data odd: the training set has the fields x: f32 [1], y: f32 [1], the test set x: f32 [1], y: f64 [1], "
            "expected the same");

  struct OneField final : Dataset {
    explicit OneField(FieldKind kind) : kind_(kind) {}
    int64_t size() const override { return 1; }
    std::vector<Field> fields() const override { return {{.name = "x", .shape = {9}, .kind = kind_}}; }
    Sample sample(int64_t) const override { return {}; }
    FieldKind kind_;
  };
  application.datasets = {{.name = "kinds", .load = [](const TrainSettings&, Split split) {
                             return std::make_shared<OneField>(split == Split::test ? FieldKind::sparse
                                                                                    : FieldKind::sequence);
                           }}};
  const TrainSettings kinds = read_words(application, {"--data", "kinds"}).settings;
  EXPECT_EQ(message_of<InputError>([&] { load_run_data(kinds); }),
            "--data kinds: the training set has the fields x: sequence of f32 [9], the test set x: sparse f32 [9], "
            "expected the same");
}

TEST(Application, HasOnlyFlagsThatItsTaskCanUse) {
  const Application application = line_application();
  const std::string help = read_words(application, {"--help"}).text;
  const std::string config = read_words(application, {"--print-config"}).text;
  for (const char* flag : {"data-dir", "resize", "fit", "cache", "top", "label-smoothing", "predict"}) {
    EXPECT_EQ(help.find(std::string("--") + flag + ' '), std::string::npos) << flag;
    EXPECT_EQ(config.find(std::string(flag) + '='), std::string::npos) << flag;
    EXPECT_NE(message_of<InputError>([&] {
                read_words(application, {(std::string("--") + flag).c_str(), "0.1"});
              }).find("unknown argument"),
              std::string::npos)
        << flag;
  }
}

TEST(Application, AddsPicturesToTernsOwn) {
  const Application application = {.name = "train_dots",
                                   .model = [](const ModelSpec&) { return nullptr; },
                                   .datasets = {{.name = "dots", .load = [](const TrainSettings&, Split) {
                                                   return std::make_shared<MemoryDataset>(
                                                       ImageSpec{.channels = 1, .height = 1, .width = 2, .classes = 2},
                                                       std::vector<uint8_t>{1, 2, 3, 4}, std::vector<uint8_t>{0, 1});
                                                 }}}};
  EXPECT_EQ(read_words(application, {}).settings.data, "digits");
  const TrainSettings settings = read_words(application, {"--data", "dots"}).settings;
  EXPECT_EQ(load_run_data(settings).training->size(), 2);
  EXPECT_NE(message_of<InputError>([&] {
              read_words(application, {"--data", "dot"});
            }).find("shapes224|speech-commands|images|dots"),
            std::string::npos);
}

TEST(Application, AModelNamesTheFieldThatItMisses) {
  const ModelSpec spec = {.fields = {{.name = "y"}}};
  EXPECT_EQ(message_of<InputError>([&] { spec.field("x"); }),
            "the samples of this data set have no field 'x', which the model needs");
}

TEST(ImageClassification, SmoothsLabelsInTrainingOnly) {
  struct Same final : Layer {
    Variable forward(const Variable& x) override { return flatten(x); }
  } model;
  const Tensor image = Tensor::from<float>({1, 3, 1, 1}, std::vector<float>{1, 2, 4});
  const Batch batch(Tensor::zeros({1}, {.dtype = DType::i64}),
                    {{"image", image}, {"label", Tensor::from<int64_t>({1}, std::vector<int64_t>{1})}});
  const DeviceBatch given(batch, batch, DType::f32);
  const auto expected = [&](double smoothing) {
    return cross_entropy(Variable(image.reshape({1, 3})), batch["label"], {.smoothing = smoothing}).value().item();
  };
  const ImageClassification task(0.1);
  EXPECT_EQ(task.forward(model, given).loss.value().item(), expected(0.1));
  model.set_training(false);
  EXPECT_EQ(task.forward(model, given).loss.value().item(), expected(0));
  EXPECT_EQ(task.count(task.forward(model, given).values(), batch)[0].value(), 0);
}

TEST(ImageClassification, CountsTheMostLikelyClasses) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Tensor logits = Tensor::from<float>({4, 4}, std::vector<float>{3, 1, 2, 0,          // the label is second
                                                                       1, 1, 1, 0,          // equal values: third
                                                                       9, 8, 7, 9,          // second
                                                                       kNan, 5, kNan, 6});  // third
  const Tensor labels = Tensor::from<int64_t>({4}, std::vector<int64_t>{2, 2, 3, 2});
  const int64_t expected[] = {0, 2, 4};
  for (int64_t top = 1; top <= 3; ++top) EXPECT_EQ(count_correct(logits, labels, top), expected[top - 1]) << top;
  EXPECT_EQ(count_correct(logits, Tensor::zeros({4}, {.dtype = DType::i64})), 4);
  EXPECT_EQ(ImageClassification(0).scores()[0].name, "accuracy");
  EXPECT_EQ(ImageClassification(0, 5).scores()[0].name, "top-5 accuracy");
}

// The model gives the image as it is.
TEST(ImageClassification, TakesTheMeanOverViewsOfAnImage) {
  Flatten model;
  const Variable image(Tensor::from<float>({1, 1, 2, 3}, std::vector<float>{1, 2, 4, 8, 16, 32}));
  const auto mean = [&](TestViews views) { return mean_over_views(model, image, views).value().to_vector<double>(); };
  EXPECT_EQ(mean(TestViews::none), (std::vector<double>{1, 2, 4, 8, 16, 32}));
  EXPECT_EQ(mean(TestViews::mirror), (std::vector<double>{2.5, 2, 2.5, 20, 16, 20}));
  EXPECT_EQ(mean(TestViews::crops), (std::vector<double>{9.25, 11, 9.25, 11, 9.25, 11}));
}

TEST(ImageClassification, TakesViewsInEvaluationAlone) {
  Flatten model;
  const Tensor image = Tensor::from<float>({1, 1, 1, 3}, std::vector<float>{1, 2, 4});
  const Batch batch(Tensor::zeros({1}, {.dtype = DType::i64}),
                    {{"image", image}, {"label", Tensor::zeros({1}, {.dtype = DType::i64})}});
  const DeviceBatch given(batch, batch, DType::f32);
  const ImageClassification task(0, 1, TestViews::mirror);
  EXPECT_EQ(task.forward(model, given).outputs[0].value().to_vector<double>(), (std::vector<double>{1, 2, 4}));
  model.set_training(false);
  EXPECT_EQ(task.forward(model, given).outputs[0].value().to_vector<double>(), (std::vector<double>{2.5, 2, 2.5}));
}

}  // namespace
}  // namespace tern
