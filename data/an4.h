#pragma once

#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "tern/data/dataset.h"

namespace tern {

/// Spelled words, numbers and commands: CMU's census corpus AN4 (Acero, "Acoustical and Environmental Robustness in
/// Automatic Speech Recognition", 1990), as cepstra. 948 utterances for training, 130 for testing, 100 frames a second.
/// A sample is "frames", f32 [T, 363], and "phones", i64 [S], indices into kPhones: the first pronunciation of each
/// word in the corpus's dictionary.
///
/// The frames are the inputs of the LSTM of CNTK's example AN4, which QSGD trains. Of each frame, the cepstra c0 to
/// c10, their first and their second differences are used: 33 numbers. A difference is HTK's: Σ_θ θ·(c[t+θ] - c[t-θ]) /
/// 10 over θ = 1, 2. Each of the 33 numbers has mean 0 and variance 1 over the training set. Frame t of a sample is the
/// stack of the 11 frames around frame stride·t. Copies of the first frame stand before an utterance, and copies of the
/// last frame after it.
class An4 final : public Dataset {
 public:
  static constexpr int64_t kCepstra = 13, kKept = 11;  ///< of a frame, in the file and here
  static constexpr int64_t kNumbers = 3 * kKept;       ///< with both differences
  static constexpr int64_t kStacked = 11;              ///< frames in a stack
  static constexpr int64_t kFeatures = kStacked * kNumbers;
  static constexpr std::array<std::string_view, 33> kPhones = {
      "AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "EH", "ER", "EY", "F", "G", "HH", "IH", "IY",
      "JH", "K",  "L",  "M",  "N",  "OW", "P", "R",  "S", "T",  "TH", "UW", "V", "W", "Y",  "Z"};

  struct Utterance {
    Tensor frames;  ///< f32 [frames, kNumbers]
    std::vector<int64_t> phones;
  };

  /// `place` is the corpus: a folder with etc/ and feat/, or an archive of it (.tar, also packed by gzip or xz). It may
  /// also be a folder that holds an4/, or one archive. Reads all files. Throws InputError, with the file and the line
  /// or byte, if something is wrong or missing, or if an utterance has fewer stacks than a path of its phones needs.
  An4(const std::filesystem::path& place, Split split, int64_t stride);

  int64_t size() const override { return std::ssize(utterances_); }
  std::vector<Field> fields() const override;
  Sample sample(int64_t index) const override;
  /// The number of stacks.
  int64_t length(int64_t index) const override;
  std::string name() const override { return "an4"; }

 private:
  std::vector<Utterance> utterances_;
  int64_t stride_;
};

/// The kept cepstra of frames [T, 13] with both differences: [T, 33].
Tensor an4_numbers(const Tensor& cepstra);

}  // namespace tern
