#include <gtest/gtest.h>

#include "tern/core/random.h"
#include "tern/data/loader.h"
#include "tern/data/npy.h"
#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"

// docs/data.md shows the class and the functions above the tests.
namespace tern {
namespace {

/// 1000 lists of 1 to 20 numbers, each with its sum.
class Sums final : public Dataset {
 public:
  int64_t size() const override { return 1000; }
  std::string name() const override { return "sums"; }
  std::vector<Field> fields() const override {
    return {{.name = "numbers", .kind = FieldKind::sequence}, {.name = "sum"}};
  }
  Sample sample(int64_t index) const override {
    const Tensor numbers = Tensor::empty({length(index)}), sum = Tensor::zeros({});
    for (int64_t i = 0; i < length(index); ++i)
      *sum.data<float>() += numbers.data<float>()[i] = random(index).uniform(static_cast<uint64_t>(i) + 1);
    return {{"numbers", numbers}, {"sum", sum}};
  }
  int64_t length(int64_t index) const override { return 1 + random(index).below(0, 20); }

 private:
  static RandomStream random(int64_t index) { return RandomStream({.seed = 1, .owner = static_cast<uint32_t>(index)}); }
};

/// The number of zeros behind the shorter lists, in an epoch of batches of 50.
int64_t count_padding(const Dataset& data, const Sampler& sampler) {
  DataLoader loader(data, sampler, {.batch_size = 50});
  int64_t zeros = 0;
  while (const auto batch = loader.next()) {
    const Tensor& numbers = (*batch)["numbers"];          // f32 [50, longest]
    const Tensor& lengths = (*batch)["numbers.lengths"];  // i64 [50]
    zeros += numbers.numel();
    for (const int64_t length : lengths.to_vector<int64_t>()) zeros -= length;
  }
  return zeros;
}

/// The order of an epoch in steps of 50 lists of similar length.
Sampler grouped(const Dataset& data) {
  return {.size = data.size(), .shuffle = true, .lengths = lengths_of(data), .step_size = 50};
}

/// The rows of two files that NumPy wrote: features.npy, f4 [N, F], and labels.npy, i8 [N].
TensorDataset read_rows(const std::filesystem::path& folder) {
  return TensorDataset({{"features", read_npy(folder / "features.npy")}, {"label", read_npy(folder / "labels.npy")}});
}

TEST(OwnData, LoadsADataSetOfOnesOwn) {
  const Sums data;
  DataLoader loader(data, {.size = data.size()}, {.batch_size = 50});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  const Tensor& numbers = (*batch)["numbers"];
  for (int64_t i = 0; i < 50; ++i) {
    float sum = 0;
    for (const float number : numbers.slice(i, i + 1).span<float>()) sum += number;
    EXPECT_EQ((*batch)["numbers.lengths"].data<int64_t>()[i], data.length(i));
    EXPECT_EQ((*batch)["sum"].data<float>()[i], sum) << "zeros change no sum";
  }
}

TEST(OwnData, HasLessPaddingInGroups) {
  const Sums data;
  const int64_t padding = count_padding(data, {.size = data.size(), .shuffle = true});
  EXPECT_GT(padding, 1000 * 5);
  EXPECT_LT(4 * count_padding(data, grouped(data)), padding);
}

TEST(OwnData, ReadsRowsOfNumPy) {
  const auto file = [](std::string header, const std::string& elements) {
    header.resize(117, ' ');
    return "\x93NUMPY" + std::string("\x01\x00\x76\x00", 4) + header + "\n" + elements;
  };
  const TemporaryFolder folder;
  write_file(folder.path() / "features.npy", file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }",
                                                  std::string("\x00\x00\x80\x3f\x00\x00\x00\x40", 8)));
  write_file(folder.path() / "labels.npy", file("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
                                                std::string("\7\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16)));
  const TensorDataset rows = read_rows(folder.path());
  DataLoader loader(rows, {.size = rows.size()}, {.batch_size = 2});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ((*batch)["features"].shape(), (Shape{2, 1}));
  EXPECT_EQ((*batch)["features"].to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ((*batch)["label"].to_vector<int64_t>(), (std::vector<int64_t>{7, 3}));
}

}  // namespace
}  // namespace tern
