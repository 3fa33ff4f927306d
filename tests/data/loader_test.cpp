#include "tern/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "tern/core/device.h"
#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

/// 103 images of 2×6×5. The bytes and the label depend on the example's index. Reading example `broken` throws, or
/// returns `label`.
class Counting final : public ImageDataset {
 public:
  explicit Counting(int64_t broken = -1, std::optional<int64_t> label = {}) : broken_(broken), label_(label) {}
  int64_t size() const override { return 103; }
  ImageSpec spec() const override { return {.channels = 2, .height = 6, .width = 5, .classes = 10}; }
  int64_t read(int64_t index, std::span<uint8_t> pixels) const override {
    ++reads;
    if (index == broken_ && !label_) throw std::runtime_error("the disk is on fire");
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(index * 7 + static_cast<int64_t>(i));
    return index == broken_ ? *label_ : index % 10;
  }

  mutable std::atomic<int64_t> reads = 0;

 private:
  int64_t broken_;
  std::optional<int64_t> label_;
};

const Sampler kShuffled{.size = 103, .shuffle = true, .seed = 3};

LoaderOptions options(int threads, bool drop_last = true) {
  return {.batch_size = 8,
          .drop_last = drop_last,
          .threads = threads,
          .seed = 3,
          .transform = {.pad = 1, .random_crop = true, .random_flip = true, .brightness = 0.2f}};
}

std::vector<LoadedBatch> rest_of_epoch(DataLoader& loader) {
  std::vector<LoadedBatch> batches;
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

void expect_same(const LoadedBatch& a, const LoadedBatch& b) {
  EXPECT_EQ(a.indices().to_vector<int64_t>(), b.indices().to_vector<int64_t>());
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const auto& [name, tensor] : a.tensors()) {
    ASSERT_TRUE(b.has(name)) << name;
    EXPECT_EQ(tensor.dtype(), b[name].dtype()) << name;
    EXPECT_EQ(tensor.shape(), b[name].shape()) << name;
    EXPECT_EQ(tensor.to_vector<double>(), b[name].to_vector<double>()) << name;
  }
  EXPECT_EQ(a.augmentations, b.augmentations);
}

TEST(DataLoader, GivesTheExamplesOfTheSamplerInOrder) {
  const Counting data;
  const LoaderOptions settings = options(1, false);
  DataLoader loader(data, kShuffled, settings);
  EXPECT_EQ(loader.batches(), 13);
  const auto order = kShuffled.order(0);
  std::vector<int64_t> met;
  std::vector<uint8_t> pixels(2 * 6 * 5);
  std::vector<float> image(pixels.size());
  for (const LoadedBatch& batch : rest_of_epoch(loader)) {
    EXPECT_EQ(batch["image"].shape(), (Shape{batch.size(), 2, 6, 5}));
    EXPECT_EQ(batch["image"].format(), MemoryFormat::channels_last);
    for (int64_t i = 0; i < batch.size(); ++i) {
      const int64_t index = batch.indices().data<int64_t>()[i];
      met.push_back(index);
      EXPECT_EQ(batch["label"].data<int64_t>()[i], data.read(index, pixels));
      settings.transform.apply(data.spec(), batch.augmentations[static_cast<size_t>(i)], pixels, image);
      const auto given = batch["image"].slice(i, i + 1).span<float>();
      EXPECT_EQ(std::vector<float>(given.begin(), given.end()), image);
    }
  }
  EXPECT_EQ(met, order);
  EXPECT_FALSE(loader.next());
}

TEST(DataLoader, GivesLabelsAndChoicesWithoutImages) {
  const Counting data;
  for (const int threads : {0, 2}) {
    LoaderOptions settings = options(threads);
    DataLoader whole(data, kShuffled, settings);
    settings.images = ImageForm::none;
    DataLoader without(data, kShuffled, settings);
    const auto expected = rest_of_epoch(whole), found = rest_of_epoch(without);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_FALSE(found[i].has("image"));
      EXPECT_EQ(found[i]["label"].to_vector<int64_t>(), expected[i]["label"].to_vector<int64_t>());
      EXPECT_EQ(found[i].indices().to_vector<int64_t>(), expected[i].indices().to_vector<int64_t>());
      EXPECT_EQ(found[i].augmentations, expected[i].augmentations);
    }
  }
}

TEST(DataLoader, ReadsNoExampleIfItHasTheLabels) {
  const Counting data;
  LoaderOptions settings = options(0);
  const auto expected = [&] {
    DataLoader loader(data, kShuffled, settings);
    return rest_of_epoch(loader);
  }();
  settings.images = ImageForm::none;
  std::vector<int64_t> labels(103);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i) % 10;
  settings.labels = std::make_shared<const std::vector<int64_t>>(labels);
  const int64_t reads = data.reads;
  DataLoader loader(data, kShuffled, settings);
  const auto found = rest_of_epoch(loader);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i]["label"].to_vector<int64_t>(), expected[i]["label"].to_vector<int64_t>());
    EXPECT_EQ(found[i].augmentations, expected[i].augmentations);
  }
  EXPECT_EQ(data.reads, reads);
  labels.pop_back();
  settings.labels = std::make_shared<const std::vector<int64_t>>(labels);
  EXPECT_EQ(message_of<Error>([&] { DataLoader(data, kShuffled, settings); }),
            "loader: 102 labels, the data set has 103 examples");
}

TEST(DataLoader, GivesPixelsAndTheChoicesForThem) {
  const Counting data;
  for (const int threads : {0, 2}) {
    LoaderOptions settings = options(threads, false);
    settings.images = ImageForm::pixels;
    DataLoader loader(data, kShuffled, settings);
    const auto size = static_cast<size_t>(data.spec().numel());
    std::vector<uint8_t> expected(size);
    for (const LoadedBatch& batch : rest_of_epoch(loader)) {
      EXPECT_FALSE(batch.has("image"));
      ASSERT_TRUE(batch.pixels);
      for (size_t i = 0; i < static_cast<size_t>(batch.size()); ++i) {
        const int64_t index = batch.indices().data<int64_t>()[i];
        data.read(index, expected);
        const std::span found(static_cast<const uint8_t*>(batch.pixels.get()) + i * size, size);
        EXPECT_TRUE(std::ranges::equal(found, expected)) << index;
        EXPECT_EQ(batch.augmentations[i], settings.transform.draw(data.spec(), settings.seed, 0, index));
      }
    }
  }
}

TEST(DataLoader, BatchesAreTheSameForAnyNumberOfThreads) {
  const Counting data;
  DataLoader alone(data, kShuffled, options(0, false));
  for (const int threads : {1, 3}) {
    DataLoader ahead(data, kShuffled, options(threads, false));
    for (const int64_t epoch : {0, 1}) {
      alone.start({.epoch = epoch});
      ahead.start({.epoch = epoch});
      const auto expected = rest_of_epoch(alone), found = rest_of_epoch(ahead);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) expect_same(found[i], expected[i]);
    }
  }
}

TEST(DataLoader, DropsOrKeepsTheLastPartialBatch) {
  const Counting data;
  for (const int threads : {0, 2}) {
    DataLoader dropping(data, kShuffled, options(threads, true));
    EXPECT_EQ(rest_of_epoch(dropping).size(), 12u);
    DataLoader keeping(data, kShuffled, options(threads, false));
    const auto batches = rest_of_epoch(keeping);
    EXPECT_EQ(batches.size(), 13u);
    EXPECT_EQ(batches.back().size(), 103 % 8);
  }
}

TEST(DataLoader, GoesOnWhereAPositionSays) {
  const Counting data;
  for (const int threads : {0, 1, 3}) {
    DataLoader whole(data, kShuffled, options(threads));
    whole.start({.epoch = 2});
    for (int i = 0; i < 5; ++i) whole.next();
    const DataPosition position = whole.position();
    EXPECT_EQ(position, (DataPosition{.epoch = 2, .batch = 5}));

    DataLoader resumed(data, kShuffled, options(threads));
    resumed.next();
    resumed.start(position);
    const auto expected = rest_of_epoch(whole), found = rest_of_epoch(resumed);
    ASSERT_EQ(found.size(), 7u);
    for (size_t i = 0; i < found.size(); ++i) expect_same(found[i], expected[i]);
  }
}

TEST(DataLoader, SkipsWithoutReading) {
  const Counting data;
  DataLoader loader(data, kShuffled, options(0));
  loader.start({.batch = 11});
  loader.next();
  EXPECT_EQ(data.reads, 8);
}

TEST(DataLoader, EveryRankTakesTheSameNumberOfSteps) {
  const Counting data;  // 2 ranks have shares of 52 and 51 examples
  for (const int rank : {0, 1}) {
    const Sampler sampler{.size = 103, .rank = rank, .ranks = 2};
    EXPECT_EQ(DataLoader(data, sampler, {.batch_size = 52 - 1}).batches(), 1);
    EXPECT_THROW(DataLoader(data, sampler, {.batch_size = 52}), InputError);
    EXPECT_EQ(DataLoader(data, sampler, {.batch_size = 13, .drop_last = false}).batches(), 4);
  }
}

TEST(DataLoader, RethrowsWhatAReadThrewAtItsBatch) {
  const int64_t broken = kShuffled.order(0)[20];
  const Counting data(broken);
  for (const int threads : {0, 1, 3}) {
    DataLoader loader(data, kShuffled, options(threads));
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.next());
    EXPECT_EQ(message_of<Error>([&] { loader.next(); }),
              join({"data set 'unnamed', sample ", broken, ": the disk is on fire"}));
    EXPECT_TRUE(loader.next());
  }
}

TEST(DataLoader, RefusesALabelThatIsNoClass) {
  for (const int64_t label : {-1, 10}) {
    const Counting data(0, label);
    for (const int threads : {0, 2}) {
      DataLoader loader(data, {.size = 103}, options(threads));
      EXPECT_EQ(message_of<InputError>([&] { loader.next(); }),
                join({"data set 'unnamed', sample 0: label ", label, ", expected 0 to 9"}));
    }
  }
}

TEST(DataLoader, EndsCleanlyAtAnyMoment) {
  const Counting data;
  for (int taken = 0; taken < 12; ++taken) {
    DataLoader loader(data, kShuffled, options(3));
    for (int i = 0; i < taken; ++i) EXPECT_EQ(loader.next().has_value(), i < loader.batches());
    if (taken % 2 == 0) loader.start({.epoch = 1, .batch = taken % loader.batches()});
  }
}

TEST(DataLoader, PreparesNoMoreThanItsQueueHolds) {
  const Counting data;
  DataLoader loader(data, kShuffled, options(2));
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(data.reads, (1 + 4) * 8);
}

TEST(DataLoader, ReadsNothingBeforeItStarts) {
  const Counting data;
  DataLoader loader(data, kShuffled, options(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(data.reads, 0);
  loader.start({.epoch = 1});
  loader.next();
  for (int i = 0; i < 2000 && data.reads < (1 + 4) * 8; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_EQ(data.reads, (1 + 4) * 8);
  const int64_t reads = data.reads;
  loader.start(loader.position());  // where it is
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(data.reads, reads);
}

TEST(DataLoader, EndsAtOnceIfItsShareIsEmpty) {
  const MemoryDataset data({.channels = 1, .height = 1, .width = 1, .classes = 1}, {0}, {0});
  for (const int threads : {0, 2}) {
    DataLoader loader(data, {.size = 1, .rank = 1, .ranks = 2},
                      {.batch_size = 1, .drop_last = false, .threads = threads});
    EXPECT_FALSE(loader.next());
    loader.start({.epoch = 1});
    EXPECT_FALSE(loader.next());
  }
}

TEST(DataLoader, RefusesAWrongSamplerBeforeItStarts) {
  const Counting data;
  Sampler sampler = kShuffled;
  sampler.lengths = std::make_shared<const std::vector<int64_t>>(3, 1);
  sampler.step_size = 8;
  EXPECT_THROW(DataLoader(data, sampler, options(0)), Error);
}

TEST(DataLoader, TakesNoMemoryFromTheSystemOnceItRuns) {
  const Counting data;
  for (const int threads : {0, 2}) {
    DataLoader loader(data, kShuffled, options(threads));
    auto batch = loader.next();
    batch = loader.next();
    const int64_t before = cpu_memory().statistics().system_allocations;
    while (batch) batch = loader.next();
    loader.start({.epoch = 1});
    while ((batch = loader.next())) {
    }
    EXPECT_EQ(cpu_memory().statistics().system_allocations, before);
  }
}

TEST(DataLoader, CountsTheSecondsItsCallerWaited) {
  const Counting data;
  DataLoader loader(data, kShuffled, options(0));
  EXPECT_EQ(loader.wait_seconds(), 0);
  loader.next();
  EXPECT_GT(loader.wait_seconds(), 0);
}

TEST(DataLoader, RefusesABatchLargerThanTheData) {
  const Counting data;
  EXPECT_EQ(message_of<InputError>([&] { DataLoader(data, kShuffled, {.batch_size = 104}); }),
            "loader: a batch of 104 samples is larger than the data, which has 103 for each rank");
  EXPECT_THROW(DataLoader(data, kShuffled, {.batch_size = 0}), InputError);
  EXPECT_THROW(DataLoader(data, kShuffled, {.threads = -1}), InputError);
  EXPECT_THROW(DataLoader(data, kShuffled, options(0)).start({.batch = 13}), Error);
}

/// 103 texts with 0 to 20 letters. Sample i also has i mod 3 words and, if i is even, their weights. The sample
/// `broken` lacks its letters.
class Texts final : public Dataset {
 public:
  explicit Texts(int64_t broken = -1) : broken_(broken) {}
  int64_t size() const override { return 103; }
  std::string name() const override { return "texts"; }
  std::vector<Field> fields() const override {
    return {{.name = "letters", .dtype = DType::u8, .kind = FieldKind::sequence},
            {.name = "words", .shape = {1000}, .kind = FieldKind::sparse},
            {.name = "number", .dtype = DType::i64}};
  }
  Sample sample(int64_t index) const override {
    const auto of = [&](const Shape& shape, DType dtype) {
      return Tensor::full(shape, static_cast<double>(index), {.dtype = dtype});
    };
    Sample sample = {{"words", of({index % 3}, DType::i64)}, {"number", of({}, DType::i64)}};
    if (index != broken_) sample.emplace("letters", of({length(index)}, DType::u8));
    if (index % 2 == 0) sample.emplace("words.values", of({index % 3}, DType::f32));
    return sample;
  }
  int64_t length(int64_t index) const override { return index * index % 21; }

 private:
  int64_t broken_;
};

TEST(DataLoader, CollatesTheSamplesOfAnyDataSet) {
  const Texts data;
  DataLoader loader(data, kShuffled, {.batch_size = 8, .drop_last = false});
  std::vector<int64_t> met;
  for (const LoadedBatch& batch : rest_of_epoch(loader)) {
    const auto indices = batch.indices().to_vector<int64_t>();
    met.insert(met.end(), indices.begin(), indices.end());
    EXPECT_EQ(batch["number"].to_vector<int64_t>(), indices);
    EXPECT_TRUE(batch.augmentations.empty());
    std::vector<Sample> samples;
    for (const int64_t index : indices) samples.push_back(data.sample(index));
    expect_same(batch, {collate("texts", data.fields(), indices, samples), {}});
  }
  EXPECT_EQ(met, kShuffled.order(0));
}

TEST(DataLoader, CollatesTheSameForAnyNumberOfThreads) {
  const Texts data;
  DataLoader alone(data, kShuffled, {.batch_size = 8, .drop_last = false, .threads = 0});
  for (const int threads : {1, 3}) {
    DataLoader ahead(data, kShuffled, {.batch_size = 8, .drop_last = false, .threads = threads});
    for (const int64_t epoch : {0, 1}) {
      alone.start({.epoch = epoch});
      ahead.start({.epoch = epoch});
      const auto expected = rest_of_epoch(alone), found = rest_of_epoch(ahead);
      ASSERT_EQ(expected.size(), 13u);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) expect_same(found[i], expected[i]);
    }
  }
}

TEST(DataLoader, RethrowsWhatASampleLacksAtItsBatch) {
  const int64_t broken = kShuffled.order(0)[20];
  const Texts data(broken);
  for (const int threads : {0, 1, 3}) {
    DataLoader loader(data, kShuffled, {.batch_size = 8, .threads = threads});
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.next());
    EXPECT_EQ(message_of<InputError>([&] { loader.next(); }),
              join({"data set 'texts', sample ", broken, ": field 'letters' is missing"}));
    EXPECT_TRUE(loader.next());
  }
}

/// Rows that cannot be read: each sample throws.
template <class Thrown>
struct Unreadable final : Dataset {
  int64_t size() const override { return 3; }
  std::string name() const override { return "rows"; }
  std::vector<Field> fields() const override { return {{.name = "x"}}; }
  Sample sample(int64_t) const override { throw Thrown("torn"); }
};

TEST(DataLoader, NamesTheSampleThatCannotBeRead) {
  const std::string message = "data set 'rows', sample 0: torn";
  for (const int threads : {0, 2}) {
    const LoaderOptions one = {.batch_size = 1, .threads = threads};
    const Unreadable<InputError> wrong;
    const Unreadable<std::out_of_range> fault;
    const Unreadable<ResourceError> short_of_memory;
    EXPECT_EQ(message_of<InputError>([&] { DataLoader(wrong, {.size = 3}, one).next(); }), message);
    EXPECT_EQ(message_of<Error>([&] { DataLoader(fault, {.size = 3}, one).next(); }), message);
    EXPECT_EQ(message_of<ResourceError>([&] { DataLoader(short_of_memory, {.size = 3}, one).next(); }), "torn");
  }
}

TEST(DataLoader, PadsLessIfItGroupsByLength) {
  const Texts data;
  const auto padding = [&](const Sampler& sampler) {
    DataLoader loader(data, sampler, {.batch_size = 8, .threads = 0});
    int64_t zeros = 0;
    while (const auto batch = loader.next()) {
      zeros += (*batch)["letters"].numel();
      for (const int64_t length : (*batch)["letters.lengths"].to_vector<int64_t>()) zeros -= length;
    }
    return zeros;
  };
  Sampler sampler = kShuffled;
  const int64_t before = padding(sampler);
  sampler.lengths = lengths_of(data);
  sampler.step_size = 8;
  EXPECT_LT(4 * padding(sampler), before);
}

TEST(DataLoader, RefusesGroupsThatAreNotItsSteps) {
  const Texts data;
  const Sampler sampler = {.size = 103, .ranks = 2, .lengths = lengths_of(data), .step_size = 8};
  EXPECT_EQ(message_of<Error>([&] { DataLoader(data, sampler, {.batch_size = 8}); }),
            "loader: the sampler groups 8 samples to a step, expected 8 for each of 2 ranks");
  EXPECT_EQ(DataLoader(data, sampler, {.batch_size = 4}).batches(), 12);
}

}  // namespace
}  // namespace tern
