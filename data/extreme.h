#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tern/data/byte_source.h"
#include "tern/data/dataset.h"

// Extreme multi-label classification: sparse rows of features, each with a few of very many labels. A sample has the
// sparse fields "features", f32 {features}, and "labels" {labels}. A batch has both as rows of a sparse matrix.

namespace tern {

/// Samples in memory, in the text format of the extreme classification repository (Bhatia et al., 2016). The first line
/// is `N D L`: samples, features, labels. Each line after it is a sample: `label,label feature:value feature:value
/// ...`. Labels and features count from 0. A line that begins with a space has no label. A label that comes twice
/// counts once. Immutable.
class ExtremeFile final : public Dataset {
 public:
  /// Reads the whole source. Throws InputError with file and line if something is wrong.
  explicit ExtremeFile(ByteSource& source);

  int64_t size() const override { return std::ssize(rows_) - 1; }
  std::vector<Field> fields() const override;
  Sample sample(int64_t index) const override;
  std::string name() const override { return name_; }

 private:
  /// Where a sample begins in the lists. The last one is their end.
  struct Row {
    size_t element = 0, label = 0;
  };

  std::string name_;
  int64_t columns_ = 0, labels_in_all_ = 0;
  std::vector<Row> rows_;
  std::vector<int32_t> features_, labels_;
  std::vector<float> values_;
};

/// The file of a split in `folder`: the one whose name ends in train.txt or test.txt, also packed (.gz, .xz). Throws
/// InputError unless there is exactly one.
std::filesystem::path find_extreme_file(const std::filesystem::path& folder, Split split);

/// Generated samples of the same form. Features and labels have power laws. The octave [2^k, 2^(k+1)) of a value is
/// uniform, and so is the value in its octave. The last octave may have fewer values, so these are likelier than their
/// neighbours. A sample has a main label and up to eight others, which follow from the main label. Each label has up to
/// twelve features of its own; a sample has most of them for each of its labels, among others that say nothing. So the
/// labels can be learnt from the features. Values have the norm 1 in each sample. A sample is a pure function of the
/// options and its index, with the same bytes on every machine. Nothing is kept in memory.
class DrawnExtreme final : public Dataset {
 public:
  struct Options {
    uint64_t seed = 1;
    Split split = Split::train;
    int64_t features = 13'591, labels = 67'009, samples = 20'000;  ///< each below 2^31
  };
  /// Throws InputError if a number is out of range.
  explicit DrawnExtreme(const Options& options);

  int64_t size() const override { return options_.samples; }
  std::vector<Field> fields() const override;
  Sample sample(int64_t index) const override;
  std::string name() const override { return "extreme"; }
  /// A checksum of the options: they determine every sample.
  uint32_t fingerprint() const override;

 private:
  Options options_;
};

}  // namespace tern
