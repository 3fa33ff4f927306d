#include "tern/data/speech_commands.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/data/npy.h"
#include "tern/data/text.h"
#include "tern/data/wav.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFeatures = MelSpectrogram::kBands * MelSpectrogram::kFrames;
constexpr const char* kArrays[] = {".npy", ".npy.gz", ".npy.xz"};
constexpr uint8_t kMostCode = 63;   ///< of u8 features
constexpr float kFloor = -80;       ///< dB; a clip's maximum has 0
constexpr float kRounding = 1e-3F;  ///< dB beyond that range that other programs' features may have

/// The folders with a word's clips, in order.
std::vector<fs::path> word_folders(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    std::error_code error;
    if (entry.is_directory(error) && !name.starts_with('.') && !name.starts_with('_')) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

void check_folder(const fs::path& folder) {
  check_input(fs::is_directory(folder), "speech-commands: ", folder.string(), " is not a folder");
}

/// The manifest in `folder`; an empty path if there is none.
fs::path find_manifest(const fs::path& folder) {
  for (const char* packing : {"", ".gz", ".xz"})
    if (const auto path = folder / join({"manifest.csv", packing}); fs::is_regular_file(path)) return path;
  return {};
}

bool has_array(const fs::path& folder) {
  return std::ranges::any_of(fs::directory_iterator(folder), [](const fs::directory_entry& file) {
    const std::string name = file.path().filename().string();
    return std::ranges::any_of(kArrays, [&](const char* ending) { return name.ends_with(ending); });
  });
}

/// The array beside a manifest.
fs::path find_array(const fs::path& folder) {
  return find_one_file(folder, {std::begin(kArrays), std::end(kArrays)},
                       join({"speech-commands: ", folder.string(), " has a manifest and "}),
                       " arrays (.npy, .npy.gz or .npy.xz), expected one");
}

std::vector<std::string> words_of_manifest(const std::vector<SpeechClip>& clips) {
  std::vector<std::string> words;
  for (const SpeechClip& clip : clips) words.push_back(clip.word);
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

std::vector<std::string> words_of_folders(const fs::path& folder) {
  std::vector<std::string> words;
  for (const fs::path& path : word_folders(folder)) words.push_back(path.filename().string());
  check_input(words.size() > 1, "speech-commands: ", folder.string(), " has ", words.size(),
              " folders of words and no manifest.csv, expected two folders or more with WAV files, or a manifest");
  return words;
}

int64_t label_of(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::lower_bound(words, word) - words.begin();
}

}  // namespace

// As the data set's authors do it (README of Speech Commands): the SHA-1 of the name up to "_nohash_", modulo 2^27, in
// per cent of 2^27 - 1: below 10 validation, below 20 testing.
bool is_test_clip(const std::string& file) {
  const std::string speaker = file.substr(0, file.find("_nohash_"));
  std::array<uint8_t, 20> digest;
  check(EVP_Digest(speaker.data(), speaker.size(), digest.data(), nullptr, EVP_sha1(), nullptr) == 1,
        "OpenSSL: EVP_Digest failed");
  uint32_t last = 0;
  for (size_t i = digest.size() - 4; i < digest.size(); ++i) last = last << 8 | digest[i];
  constexpr uint32_t kMost = (1u << 27) - 1;
  return (last & kMost) * (100.0 / kMost) < 20;
}

std::vector<SpeechClip> read_speech_manifest(ByteSource& source) {
  const std::string text = read_text(source);
  std::vector<std::string_view> titles;
  std::vector<SpeechClip> clips;
  int64_t number = 0;
  const auto check_line = [&](bool good, const auto&... found_and_expected) {
    check_input(good, source.name(), ": line ", number, ": ", found_and_expected...);
  };
  size_t index = 0, word = 0, split = 0;  // columns
  for (std::string_view line : split_at(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto cells = split_at(line, ',');
    if (titles.empty()) {
      titles = cells;
      const auto column = [&](const char* title) {
        const auto place = std::ranges::find(titles, title);
        check_line(place != titles.end(), "no column '", title, "', expected index, word and split");
        return static_cast<size_t>(place - titles.begin());
      };
      index = column("index"), word = column("word"), split = column("split");
      continue;
    }
    check_line(cells.size() == titles.size(), "found ", cells.size(), " columns, expected ", titles.size());
    check_line(cells[index] == std::to_string(clips.size()), "found index '", escaped(cells[index]), "', expected ",
               clips.size());
    check_line(!cells[word].empty(), "found no word, expected one");
    check_line(cells[word].find('"') == std::string_view::npos, "found word '", escaped(cells[word]),
               "', expected one without quotes");
    check_line(cells[split] == "train" || cells[split] == "validation" || cells[split] == "test", "found split '",
               escaped(cells[split]), "', expected train, validation or test");
    clips.push_back({std::string(cells[word]), std::string(cells[split])});
  }
  check_input(!clips.empty(), source.name(), ": found no clip, expected a line of titles and a line for each clip");
  return clips;
}

std::vector<std::string> list_speech_words(const fs::path& folder) {
  check_folder(folder);
  const fs::path manifest = find_manifest(folder);
  return manifest.empty() ? words_of_folders(folder) : words_of_manifest(read_speech_manifest(*open_source(manifest)));
}

bool holds_speech_commands(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return false;
  if (!find_manifest(folder).empty()) return has_array(folder);
  const auto is_clip = [](const fs::directory_entry& file) {
    const std::string name = file.path().filename().string();
    return name.ends_with(".wav") && name.find("_nohash_") != std::string::npos;
  };
  return std::ranges::any_of(word_folders(folder), [&](const fs::path& word) {
    const fs::directory_iterator files(word, fs::directory_options::skip_permission_denied);
    return std::any_of(begin(files), end(files), is_clip);
  });
}

SpeechCommands::SpeechCommands(const fs::path& folder, Split split) {
  check_folder(folder);
  const fs::path manifest = find_manifest(folder);
  if (manifest.empty())
    list_files(folder, split);
  else
    read_array(manifest, find_array(folder), split);
  check_input(!clips_.empty(), "speech-commands: ", folder.string(), " has no clip for ",
              split == Split::train ? "training" : "testing", ", expected some");
}

void SpeechCommands::list_files(const fs::path& folder, Split split) {
  words_ = words_of_folders(folder);
  for (const fs::path& word : word_folders(folder)) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(word))
      if (entry.path().extension() == ".wav") files.push_back(entry.path());
    check_input(!files.empty(), "speech-commands: ", word.string(), " has no .wav file, expected some");
    std::ranges::sort(files);
    const int64_t label = label_of(words_, word.filename().string());
    for (fs::path& file : files)
      if (is_test_clip(file.filename().string()) == (split == Split::test)) clips_.push_back({label, std::move(file)});
  }
}

void SpeechCommands::read_array(const fs::path& manifest, const fs::path& array, Split split) {
  const auto lines = read_speech_manifest(*open_source(manifest));
  const Tensor all = read_npy(array);
  check_input(
      (all.dtype() == DType::u8 || all.dtype() == DType::f32) && all.shape() == Shape{std::ssize(lines), kFeatures},
      array.string(), ": found ", all.dtype(), " ", all.shape(), ", expected u8 or f32 ",
      Shape{std::ssize(lines), kFeatures}, ", a row for each clip of ", manifest.string());
  if (all.dtype() == DType::u8) {
    const auto codes = all.span<uint8_t>();
    const auto wrong = std::ranges::find_if(codes, [](uint8_t code) { return code > kMostCode; });
    check_input(wrong == codes.end(), array.string(), ": row ", (wrong - codes.begin()) / kFeatures, ": found ",
                wrong == codes.end() ? 0 : *wrong, ", expected 0 to ", kMostCode);
  } else {
    const auto levels = all.span<float>();
    const auto wrong =
        std::ranges::find_if(levels, [](float level) { return !(level >= kFloor - kRounding && level <= kRounding); });
    check_input(wrong == levels.end(), array.string(), ": row ", (wrong - levels.begin()) / kFeatures, ": found ",
                wrong == levels.end() ? 0 : *wrong, ", expected ", kFloor, " to 0 dB");
  }
  words_ = words_of_manifest(lines);
  std::vector<int64_t> rows;
  for (size_t i = 0; i < lines.size(); ++i) {
    if ((lines[i].split == "train") != (split == Split::train)) continue;
    clips_.push_back({label_of(words_, lines[i].word)});
    rows.push_back(static_cast<int64_t>(i));
  }
  array_ = Tensor::empty({std::ssize(rows), kFeatures}, {.dtype = all.dtype()});
  const size_t bytes = kFeatures * size_of(all.dtype());
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(static_cast<char*>(array_.raw_data()) + i * bytes,
                static_cast<const char*>(all.raw_data()) + static_cast<size_t>(rows[i]) * bytes, bytes);
}

std::vector<Field> SpeechCommands::fields() const {
  return {{.name = "image", .shape = {1, MelSpectrogram::kBands, MelSpectrogram::kFrames}},
          {.name = "label", .dtype = DType::i64}};
}

Sample SpeechCommands::sample(int64_t index) const {
  check(0 <= index && index < size(), "speech-commands: clip ", index, " of ", size());
  const Clip& clip = clips_[static_cast<size_t>(index)];
  const Tensor image = Tensor::empty({1, MelSpectrogram::kBands, MelSpectrogram::kFrames});
  const Tensor label = Tensor::empty({}, {.dtype = DType::i64});
  *label.data<int64_t>() = clip.label;
  const auto features = image.span<float>();
  const auto row = [&](auto values) { return values.subspan(static_cast<size_t>(index) * kFeatures, kFeatures); };
  if (cache_) {
    const auto bytes = std::as_writable_bytes(features);
    cache_->read(static_cast<size_t>(index), {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
  } else if (!array_.defined()) {
    compute(clip, features);
  } else if (array_.dtype() == DType::f32) {
    std::ranges::copy(row(array_.span<float>()), features.begin());
  } else {
    std::ranges::transform(row(array_.span<uint8_t>()), features.begin(),
                           [](uint8_t code) { return static_cast<float>(code) * 80 / kMostCode - 80; });
  }
  return {{"image", image}, {"label", label}};
}

void SpeechCommands::compute(const Clip& clip, std::span<float> features) const {
  const auto samples = parse_wav(read_bytes(clip.path), clip.path.string(), MelSpectrogram::kRate);
  spectrogram_.compute(samples, features);
}

uint32_t SpeechCommands::fingerprint() const {
  if (array_.defined()) return Dataset::fingerprint();
  Checksum sum;
  for (const Clip& clip : clips_) {
    sum.add(words_[static_cast<size_t>(clip.label)]);
    sum.add(clip.path.filename().string());
    sum.add(static_cast<int64_t>(fs::file_size(clip.path)));
  }
  return sum.value();
}

void SpeechCommands::use_cache(const fs::path& path, const ImageCache::Progress& progress) {
  if (array_.defined()) return;
  Checksum made_of;
  for (const Clip& clip : clips_) {
    made_of.add(fs::absolute(clip.path).string());
    made_of.add(static_cast<int64_t>(fs::file_size(clip.path)));
    made_of.add(int64_t{fs::last_write_time(clip.path).time_since_epoch().count()});
  }
  const ImageCacheKey key{
      .made_of = made_of.value(), .examples = clips_.size(), .example_bytes = kFeatures * sizeof(float)};
  cache_ = ImageCache::open_or_make(
      path, key,
      [this](size_t i, std::span<uint8_t> to) {
        std::array<float, kFeatures> features;
        compute(clips_[i], features);
        std::memcpy(to.data(), features.data(), to.size());
        return true;
      },
      progress);
}

}  // namespace tern
