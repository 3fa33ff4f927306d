#include "tern/data/extreme.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

ExtremeFile read_rows_of(const std::string& text) {
  return ExtremeFile(*open_source("rows.txt", {text.begin(), text.end()}));
}
std::string refusal(const std::string& text) {
  return message_of<InputError>([&] { read_rows_of(text); });
}

TEST(ExtremeFile, ReadsLabelsFeaturesAndValues) {
  const auto data = read_rows_of("4 6 5\n0,4 0:1 5:-2.5\n 2:1e-3\r\n3,1,3\n2   1:0.5  2:7 \n\n");
  ASSERT_EQ(data.size(), 4);
  EXPECT_EQ(data.fields(), (std::vector<Field>{{.name = "features", .shape = {6}, .kind = FieldKind::sparse},
                                               {.name = "labels", .shape = {5}, .kind = FieldKind::sparse}}));
  using Numbers = std::vector<int64_t>;
  const std::vector<Numbers> labels = {{0, 4}, {}, {1, 3}, {2}}, features = {{0, 5}, {2}, {}, {1, 2}};
  const std::vector<std::vector<float>> values = {{1, -2.5f}, {1e-3f}, {}, {0.5f, 7}};
  for (int64_t i = 0; i < 4; ++i) {
    const auto place = static_cast<size_t>(i);
    EXPECT_EQ(data.sample(i).at("labels").to_vector<int64_t>(), labels[place]);
    EXPECT_EQ(data.sample(i).at("features").to_vector<int64_t>(), features[place]);
    EXPECT_EQ(data.sample(i).at("features.values").to_vector<float>(), values[place]);
  }
}

TEST(ExtremeFile, ReadsLinesThatCrossTheReadersParts) {
  std::string text = "3000 100000 10\n";
  for (int i = 0; i < 3000; ++i) text += "7 " + std::to_string(i) + ":1 99999:0.25\n";
  const auto data = read_rows_of(text);
  ASSERT_EQ(data.size(), 3000);
  for (const int64_t i : {0, 1, 1234, 2999})
    EXPECT_EQ(data.sample(i).at("features").to_vector<int64_t>(), (std::vector<int64_t>{i, 99999}));
}

TEST(ExtremeFile, NamesFileLineWhatWasFoundAndWhatWasExpected) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "rows.txt: line 1: found its end, expected the number of samples, 1 to 2147483647"},
      {"3 0 9\n", "rows.txt: line 1: found '0', expected the number of features, 1 to 2147483647"},
      {"1 2 3000000000\n", "rows.txt: line 1: found '3000000000', expected the number of labels, 1 to 2147483647"},
      {"1 2 3 4\n0 0:1\n",
       "rows.txt: line 1: found '4', expected the end of the line after samples, features and labels"},
      {"1 2 3\n3 0:1\n", "rows.txt: line 2: found '3', expected a label from 0 to 2"},
      {"1 2 3\n1,-1 0:1\n", "rows.txt: line 2: found '-1', expected a label from 0 to 2"},
      {"1 2 3\n1, 0:1\n", "rows.txt: line 2: found '', expected a label from 0 to 2"},
      {"1 2 3\n0:1\n", "rows.txt: line 2: found '0:1', expected a label from 0 to 2"},
      {"2 2 3\n1 0:1\n1 2:1\n", "rows.txt: line 3: found '2:1', expected FEATURE:VALUE with a feature from 0 to 1"},
      {"1 2 3\n1 0.5:1\n", "rows.txt: line 2: found '0.5:1', expected FEATURE:VALUE with a feature from 0 to 1"},
      {"1 2 3\n1 1\n", "rows.txt: line 2: found its end, expected ':' and a value after the feature"},
      {"1 2 3\n1 1:x\n", "rows.txt: line 2: found 'x', expected a finite value of 32 bits after ':'"},
      {"1 2 3\n1 1:nan\n", "rows.txt: line 2: found 'nan', expected a finite value of 32 bits after ':'"},
      {"1 2 3\n1 1:1e39\n", "rows.txt: line 2: found '1e39', expected a finite value of 32 bits after ':'"},
      {"1 2 3\n1 1:1\n2 1:1\n",
       "rows.txt: line 3: found '2', expected the end of the file, because line 1 declares 1 sample"},
      {"3 2 3\n1 1:1\n2 1:1\n",
       "rows.txt: line 3: found the end of the file after 2 samples, expected the 3 that line 1 declares"},
      {"1 2 3\n\x01\xff 1:1\n", R"(rows.txt: line 2: found '\x01\xff', expected a label from 0 to 2)"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(refusal(text), message) << text;
}

TEST(ExtremeFile, FindsTheFileOfASplit) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<InputError>([&] { find_extreme_file(folder.path() / "none", Split::train); }),
            "extreme-file: " + (folder.path() / "none").string() + " is not a folder");
  write_file(folder.path() / "amazon_train.txt", "1 1 1\n0 0:1\n");
  write_file(folder.path() / "test.txt.gz", "");
  EXPECT_EQ(find_extreme_file(folder.path(), Split::train), folder.path() / "amazon_train.txt");
  EXPECT_EQ(find_extreme_file(folder.path(), Split::test), folder.path() / "test.txt.gz");
  write_file(folder.path() / "train.txt", "");
  EXPECT_EQ(message_of<InputError>([&] { find_extreme_file(folder.path(), Split::train); }),
            "extreme-file: " + folder.path().string() +
                " has 2 files whose names end in train.txt, train.txt.gz or train.txt.xz, expected one");
}

uint32_t checksum(const DrawnExtreme& data, std::initializer_list<int64_t> samples) {
  uint32_t crc = 0;
  for (const int64_t index : samples)
    for (const auto& [name, tensor] : data.sample(index))
      crc = crc32c({static_cast<const std::byte*>(tensor.raw_data()), tensor.bytes()}, crc);
  return crc;
}

TEST(DrawnExtreme, SamplesAreTheSameOnEveryMachine) {
  const DrawnExtreme data({.seed = 1, .split = Split::train, .features = 135'909, .labels = 670'091});
  const DrawnExtreme test({.seed = 1, .split = Split::test, .features = 135'909, .labels = 670'091});
  EXPECT_EQ(data.size(), 20'000);
  EXPECT_EQ(checksum(data, {0, 17, 19'999}), 9'560'782u);
  EXPECT_EQ(checksum(test, {0, 17, 19'999}), 2'549'767'534u);
  EXPECT_NE(data.fingerprint(), test.fingerprint());
}

TEST(DrawnExtreme, FieldsAreInRangeSortedAndOfNormOne) {
  for (const auto& [features, labels] : {std::pair<int64_t, int64_t>{1, 1}, {2, 3}, {1000, 5000}}) {
    const DrawnExtreme data({.features = features, .labels = labels, .samples = 50});
    std::vector<int64_t> indices;
    std::vector<Sample> samples;
    for (int64_t i = 0; i < data.size(); ++i) {
      indices.push_back(i);
      samples.push_back(data.sample(i));
      for (const char* field : {"features", "labels"}) {
        const auto columns = samples.back().at(field).to_vector<int64_t>();
        EXPECT_TRUE(!columns.empty() && std::ranges::is_sorted(columns));
        EXPECT_EQ(std::ranges::adjacent_find(columns), columns.end());
      }
      const auto values = samples.back().at("features.values").to_vector<float>();
      EXPECT_NEAR(std::inner_product(values.begin(), values.end(), values.begin(), 0.0), 1, 1e-5);
    }
    collate(data.name(), data.fields(), indices, samples);  // throws if a column is out of range
  }
}

// Each octave of labels and features is about as frequent as any other.
TEST(DrawnExtreme, LabelsHaveAPowerLaw) {
  const DrawnExtreme data({.features = 1024, .labels = 1024, .samples = 4000});
  std::vector<double> octaves(11);
  double all = 0;
  for (int64_t i = 0; i < data.size(); ++i)
    for (const int64_t label : data.sample(i).at("labels").to_vector<int64_t>()) {
      octaves[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(label)))] += 1;
      all += 1;
    }
  EXPECT_GT(all / 4000, 3.5);
  EXPECT_LT(all / 4000, 5);
  for (const double count : octaves) {
    EXPECT_GT(count / all, 0.3 / 11);
    EXPECT_LT(count / all, 2.5 / 11);
  }
}

TEST(DrawnExtreme, RefusesNumbersOutOfRange) {
  EXPECT_EQ(message_of<InputError>([] { DrawnExtreme({.labels = 0}); }),
            "extreme: found 0 labels, expected 1 to 2147483647");
  EXPECT_EQ(message_of<InputError>([] { DrawnExtreme({.features = int64_t{1} << 31}); }),
            "extreme: found 2147483648 features, expected 1 to 2147483647");
}

}  // namespace
}  // namespace tern
