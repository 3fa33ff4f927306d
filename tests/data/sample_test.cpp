#include "tern/data/sample.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

Tensor floats(const Shape& shape, const std::vector<float>& values) { return Tensor::from(shape, values); }
Tensor integers(const std::vector<int64_t>& values) { return Tensor::from({std::ssize(values)}, values); }

const Field kFeatures = {.name = "features", .shape = {2}};
const Field kFrames = {.name = "frames", .shape = {2}, .kind = FieldKind::sequence};
const Field kWords = {.name = "words", .shape = {10}, .kind = FieldKind::sparse};

Batch collated(const Field& field, const std::vector<Sample>& samples) {
  std::vector<int64_t> indices;
  for (size_t i = 0; i < samples.size(); ++i) indices.push_back(static_cast<int64_t>(10 + i));
  return collate("rows", {field}, indices, samples);
}

TEST(Collate, StacksDenseFields) {
  const Batch batch =
      collate("rows", {kFeatures, {.name = "label", .dtype = DType::i64}}, {7, 3},
              {{{"features", floats({2}, {1, 2})}, {"label", Tensor::full({}, 5, {.dtype = DType::i64})}},
               {{"features", floats({2}, {3, 4})}, {"label", Tensor::full({}, 6, {.dtype = DType::i64})}}});
  EXPECT_EQ(batch.size(), 2);
  EXPECT_EQ(batch.indices().to_vector<int64_t>(), (std::vector<int64_t>{7, 3}));
  EXPECT_EQ(batch["features"].shape(), (Shape{2, 2}));
  EXPECT_EQ(batch["features"].to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(batch["label"].shape(), (Shape{2}));
  EXPECT_EQ(batch["label"].to_vector<int64_t>(), (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(batch.tensors().size(), 2u);
}

TEST(Collate, KeepsEveryDType) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8}) {
    const auto of = [&](const Shape& shape, double value) { return Tensor::full(shape, value, {.dtype = dtype}); };
    const Batch batch = collate("rows",
                                {{.name = "dense", .dtype = dtype, .shape = {1, 2}},
                                 {.name = "sequence", .dtype = dtype, .kind = FieldKind::sequence},
                                 {.name = "sparse", .dtype = dtype, .shape = {4}, .kind = FieldKind::sparse}},
                                {0, 1},
                                {{{"dense", of({1, 2}, 3)}, {"sequence", of({1}, 4)}, {"sparse", integers({2, 0})}},
                                 {{"dense", of({1, 2}, 5)},
                                  {"sequence", of({2}, 6)},
                                  {"sparse", integers({3})},
                                  {"sparse.values", of({1}, 7)}}});
    for (const char* name : {"dense", "sequence", "sparse.values"}) EXPECT_EQ(batch[name].dtype(), dtype) << name;
    EXPECT_EQ(batch["dense"].to_vector<double>(), (std::vector<double>{3, 3, 5, 5})) << to_string(dtype);
    EXPECT_EQ(batch["sequence"].to_vector<double>(), (std::vector<double>{4, 0, 6, 6})) << to_string(dtype);
    EXPECT_EQ(batch["sparse.values"].to_vector<double>(), (std::vector<double>{1, 1, 7})) << to_string(dtype);
  }
}

TEST(Collate, PadsSequencesWithZeros) {
  const Batch batch = collated(kFrames, {{{"frames", floats({1, 2}, {1, 2})}},
                                         {{"frames", floats({0, 2}, {})}},
                                         {{"frames", floats({2, 2}, {3, 4, 5, 6})}}});
  EXPECT_EQ(batch["frames"].shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(batch["frames"].to_vector<float>(), (std::vector<float>{1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 5, 6}));
  EXPECT_EQ(batch["frames.lengths"].to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 2}));
}

TEST(Collate, TakesSequencesThatAreAllEmpty) {
  const Batch batch = collated(kFrames, {{{"frames", floats({0, 2}, {})}}, {{"frames", floats({0, 2}, {})}}});
  EXPECT_EQ(batch["frames"].shape(), (Shape{2, 0, 2}));
  EXPECT_EQ(batch["frames.lengths"].to_vector<int64_t>(), (std::vector<int64_t>{0, 0}));
}

TEST(Collate, JoinsSparseRows) {
  const Batch batch =
      collated(kWords, {{{"words", integers({9, 0})}}, {{"words", integers({})}}, {{"words", integers({4})}}});
  const SparseRows rows = batch.sparse("words");
  EXPECT_EQ(rows.indices.to_vector<int64_t>(), (std::vector<int64_t>{9, 0, 4}));
  EXPECT_EQ(rows.offsets.to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_FALSE(rows.values.defined());
  EXPECT_FALSE(batch.has("words.values"));
}

TEST(Collate, GivesOnesToSamplesWithoutValuesAmongOthersWithThem) {
  const SparseRows rows = collated(kWords, {{{"words", integers({9, 0})}},
                                            {{"words", integers({3, 3})}, {"words.values", floats({2}, {0.5f, -2})}},
                                            {{"words", integers({4})}, {"words.values", Tensor()}}})
                              .sparse("words");
  EXPECT_EQ(rows.indices.to_vector<int64_t>(), (std::vector<int64_t>{9, 0, 3, 3, 4}));
  EXPECT_EQ(rows.values.to_vector<float>(), (std::vector<float>{1, 1, 0.5f, -2, 1}));
}

TEST(Collate, TakesSparseRowsThatAreAllEmpty) {
  const SparseRows rows = collated(kWords, {{{"words", integers({})}}, {{"words", integers({})}}}).sparse("words");
  EXPECT_EQ(rows.indices.shape(), (Shape{0}));
  EXPECT_EQ(rows.offsets.to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 0}));
}

struct BadSample {
  std::string name;
  Field field;
  Sample sample;  // follows a good one, and has index 11
  std::string message;
};

class BadSamples : public testing::TestWithParam<BadSample> {};

TEST_P(BadSamples, AreInputErrorsThatNameSampleAndField) {
  const Field& field = GetParam().field;
  const Sample& sample = GetParam().sample;
  Sample good = {{field.name, field.kind == FieldKind::sparse ? integers({1}) : floats({2}, {1, 2})}};
  if (field.kind == FieldKind::sequence) good = {{field.name, floats({1, 2}, {1, 2})}};
  EXPECT_EQ(message_of<InputError>([&] {
              collated(field, {good, sample});
            }),
            "data set 'rows', sample 11: field " + GetParam().message);
  EXPECT_EQ(message_of<InputError>([&] { collated(field, {good, good}); }), "");
}

INSTANTIATE_TEST_SUITE_P(
    Samples, BadSamples,
    testing::Values(
        BadSample{"Missing", kFeatures, {}, "'features' is missing"},
        BadSample{"Undefined", kFeatures, {{"features", Tensor()}}, "'features' is missing"},
        BadSample{
            "OtherDType", kFeatures, {{"features", integers({1, 2})}}, "'features' has elements of i64, expected f32"},
        BadSample{
            "OtherShape", kFeatures, {{"features", floats({3}, {1, 2, 3})}}, "'features' has shape [3], expected [2]"},
        BadSample{"OtherRank",
                  kFeatures,
                  {{"features", floats({1, 2}, {1, 2})}},
                  "'features' has shape [1, 2], expected [2]"},
        BadSample{"OtherFormat",
                  kFeatures,
                  {{"features", Tensor::zeros({1, 2, 1, 1}, {.format = MemoryFormat::channels_last})}},
                  "'features' is channels_last, expected row_major"},
        BadSample{"Unknown",
                  kFeatures,
                  {{"features", floats({2}, {1, 2})}, {"feature", floats({2}, {1, 2})}},
                  "'feature' is not among the fields of the data set"},
        BadSample{"ValuesOfADenseField",
                  kFeatures,
                  {{"features", floats({2}, {1, 2})}, {"features.values", floats({2}, {1, 2})}},
                  "'features.values' is not among the fields of the data set"},
        BadSample{"OtherElements",
                  kFrames,
                  {{"frames", floats({2, 3}, {1, 2, 3, 4, 5, 6})}},
                  "'frames' has shape [2, 3], expected [length, 2]"},
        BadSample{
            "NoLength", kFrames, {{"frames", floats({2}, {1, 2})}}, "'frames' has shape [2], expected [length, 2]"},
        BadSample{"NoDimension", kFrames, {{"frames", floats({}, {1})}}, "'frames' has shape [], expected [length, 2]"},
        BadSample{
            "ColumnBehindTheLast", kWords, {{"words", integers({3, 10})}}, "'words' has column 10, expected 0 to 9"},
        BadSample{"NegativeColumn", kWords, {{"words", integers({-1})}}, "'words' has column -1, expected 0 to 9"},
        BadSample{
            "ColumnsOfFloats", kWords, {{"words", floats({1}, {1})}}, "'words' has elements of f32, expected i64"},
        BadSample{"ColumnsOfRankTwo",
                  kWords,
                  {{"words", Tensor::zeros({1, 1}, {.dtype = DType::i64})}},
                  "'words' has shape [1, 1], expected [elements]"},
        BadSample{"FewerValues",
                  kWords,
                  {{"words", integers({1, 2})}, {"words.values", floats({1}, {1})}},
                  "'words.values' has shape [1], expected [2]"},
        BadSample{"ValuesOfIntegers",
                  kWords,
                  {{"words", integers({1})}, {"words.values", integers({1})}},
                  "'words.values' has elements of i64, expected f32"},
        BadSample{"MisspelledValues",
                  kWords,
                  {{"words", integers({1})}, {"word.values", floats({1}, {2})}},
                  "'word.values' is not among the fields of the data set"}),
    [](const auto& sample) { return sample.param.name; });

TEST(Collate, RefusesFieldsThatDoNotFit) {
  EXPECT_EQ(message_of<Error>([] {
              collated({.name = "words", .kind = FieldKind::sparse}, {{{"words", integers({1})}}});
            }),
            "data set 'rows': the sparse field 'words' has shape [], expected [columns]");
  const Field lengths = {.name = "frames.lengths", .shape = {1}};
  EXPECT_EQ(message_of<Error>([&] {
              collate("rows", {kFrames, lengths}, {0},
                      {{{"frames", floats({1, 2}, {1, 2})}, {"frames.lengths", floats({1}, {1})}}});
            }),
            "data set 'rows': two fields give a batch the tensor 'frames.lengths', expected one");
  EXPECT_EQ(message_of<Error>([] {
              collate("rows", {kFeatures}, {1, 2}, {{{"features", floats({2}, {1, 2})}}});
            }),
            "collate: 2 indices for 1 samples");
}

TEST(Batch, NamesTheTensorsThatItHas) {
  const Batch batch = collated(kWords, {{{"words", integers({1})}}});
  EXPECT_EQ(message_of<Error>([&] { batch["image"]; }),
            "batch: no tensor 'image', it has 'words.indices', 'words.offsets'");
  EXPECT_EQ(message_of<Error>([] { Batch(integers({1}), {})["image"]; }), "batch: no tensor 'image', it has none");
  EXPECT_EQ(message_of<Error>([&] { batch.sparse("text"); }),
            "batch: no tensor 'text.indices', it has 'words.indices', 'words.offsets'");
}

}  // namespace
}  // namespace tern
