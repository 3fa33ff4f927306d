#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tern/data/byte_source.h"
#include "tern/data/dataset.h"
#include "tern/data/image_cache.h"
#include "tern/data/mel_spectrogram.h"

namespace tern {

/// Seconds of spoken words as log-mel spectrograms: Google Speech Commands (Warden, "Speech Commands: A Dataset for
/// Limited-Vocabulary Speech Recognition", 2018), the data of IST's fully connected networks. The words are the
/// classes, in alphabetical order. A sample is "image", f32 [1, 128, 32] in dB from -80 to 0 as MelSpectrogram computes
/// it, and "label", i64 [].
class SpeechCommands final : public Dataset {
 public:
  /// `folder` holds one of these:
  /// - WORD/SPEAKER_nohash_N.wav: files with 16,000 samples per second, one channel and 16 bits. Folders that begin
  ///   with "_" or "." do not count. A speaker is for testing if the data set's own hash puts it into the validation or
  ///   the testing set: a fifth of all, as in IST's code;
  /// - manifest.csv, whose columns include index, word and split (train, validation or test), and one array of NumPy
  ///   with a row of features for each of its lines: [N, 4096] in f32, dB, or in u8 from 0 to 63, dB = q·80/63 - 80.
  ///   Both may be packed with gzip or xz.
  /// Throws InputError with the file and the line if something is wrong or missing. Reads the array, but no WAV file.
  SpeechCommands(const std::filesystem::path& folder, Split split);

  int64_t size() const override { return std::ssize(clips_); }
  std::vector<Field> fields() const override;
  /// Throws InputError if the clip's file is damaged.
  Sample sample(int64_t index) const override;
  std::string name() const override { return "speech-commands"; }
  uint32_t fingerprint() const override;
  const std::vector<std::string>& words() const { return words_; }

  /// As ImageFolder::use_cache, for the spectrograms of WAV files. Does nothing if there is an array.
  void use_cache(const std::filesystem::path& path, const ImageCache::Progress& progress);

 private:
  struct Clip {
    int64_t label = 0;
    std::filesystem::path path = {};  ///< empty if `array_` has the features
  };
  void list_files(const std::filesystem::path& folder, Split split);
  void read_array(const std::filesystem::path& manifest, const std::filesystem::path& array, Split split);
  void compute(const Clip& clip, std::span<float> features) const;

  std::vector<std::string> words_;
  std::vector<Clip> clips_;
  Tensor array_;  ///< [size(), 4096], f32 or u8; undefined for WAV files
  MelSpectrogram spectrogram_;
  std::optional<ImageCache> cache_;
};

/// A line of a manifest.
struct SpeechClip {
  std::string word, split;  ///< split: train, validation or test
};

/// Reads a manifest: a line of titles, then a line for each clip, with commas between the columns. Throws InputError
/// with the line, what was found and what was expected.
std::vector<SpeechClip> read_speech_manifest(ByteSource& source);

/// The words in `folder`: SpeechCommands::words.
std::vector<std::string> list_speech_words(const std::filesystem::path& folder);

/// Whether `folder` has a manifest and an array, or files WORD/SPEAKER_nohash_N.wav. Reads none of them.
bool holds_speech_commands(const std::filesystem::path& folder);

/// Whether the data set's own hash puts a clip into the validation or the testing set. `file` is its name without
/// folders; all clips of a speaker are together.
bool is_test_clip(const std::string& file);

}  // namespace tern
