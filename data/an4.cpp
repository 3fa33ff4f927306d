#include "tern/data/an4.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/data/mfc.h"
#include "tern/data/tar.h"
#include "tern/data/text.h"
#include "tern/data/transcript.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

/// The files of the corpus by their path in it, such as "etc/an4.dic".
class Corpus {
 public:
  explicit Corpus(const fs::path& place) {
    check_input(fs::exists(place), "an4: ", place.string(), " does not exist");
    for (const fs::path& root : {place, place / "an4"})
      if (fs::is_directory(root / "etc")) {
        root_ = root;
        return;
      }
    unpack(fs::is_directory(place) ? archive_in(place) : place);
  }

  std::unique_ptr<ByteSource> open(const std::string& path) const {
    if (!archive_) return open_source(root_ / path);
    const auto file = files_.find(path);
    check_input(file != files_.end(), archive_->string(), ": found no file ", escaped(path), ", expected one");
    return open_source(join({archive_->string(), ": ", path}), file->second);
  }

 private:
  static fs::path archive_in(const fs::path& folder) {
    return find_one_file(folder, {".tar", ".tar.gz", ".tar.xz", ".tgz"},
                         join({"an4: ", folder.string(), " has no folder etc or an4/etc, and "}),
                         " archives (.tar, .tar.gz, .tar.xz or .tgz), expected the corpus or one archive");
  }

  void unpack(const fs::path& archive) {
    archive_ = archive;
    TarArchive members(open_source(archive));
    while (const auto member = members.next()) {
      const std::string path = join({"/", member->name().substr(archive.string().size() + 2)});  // behind "FILE: "
      for (const char* folder : {"/etc/", "/feat/"})
        if (const size_t at = path.find(folder); at != std::string::npos)
          files_.emplace(path.substr(at + 1), read_whole(*member));
    }
  }

  fs::path root_;
  std::optional<fs::path> archive_;
  std::map<std::string, std::vector<uint8_t>> files_;  ///< of the archive
};

/// The lines of the list of utterances of a split, such as "an4_clstk/fash/an251-fash-b", and their transcripts.
class Script {
 public:
  Script(const Corpus& corpus, Split split) : name_(split == Split::train ? "train" : "test") {
    const auto transcripts = corpus.open(join({"etc/an4_", name_, ".transcription"}));
    transcripts_name_ = transcripts->name();
    for (Transcript& transcript : read_transcripts(*transcripts)) {
      std::string utterance = transcript.utterance;
      transcripts_.emplace(std::move(utterance), std::move(transcript));
    }
    const auto list = corpus.open(join({"etc/an4_", name_, ".fileids"}));
    const std::string text = read_text(*list);
    int64_t number = 0;
    for (const std::string_view line : split_at(text, '\n')) {
      ++number;
      for (const std::string_view word : words_in(line)) {
        const std::string utterance(word.substr(word.rfind('/') + 1));
        check_input(transcripts_.contains(utterance), list->name(), ": line ", number, ": found utterance '",
                    escaped(utterance), "', which has no transcript in ", transcripts_name_, ", expected one");
        paths_.emplace_back(word);
      }
    }
    check_input(!paths_.empty(), list->name(), ": found no utterance, expected a line for each");
  }

  const std::vector<std::string>& paths() const { return paths_; }
  const Transcript& transcript(const std::string& path) const {
    return transcripts_.at(path.substr(path.rfind('/') + 1));
  }
  /// The phones of the words.
  std::vector<int64_t> phones(const Transcript& transcript, const Pronunciations& dictionary) const {
    std::vector<int64_t> phones;
    for (const std::string& word : transcript.words) {
      const auto known = dictionary.find(word);
      check_input(known != dictionary.end(), transcripts_name_, ": line ", transcript.line, ": found the word '",
                  escaped(word), "', expected a word of etc/an4.dic");
      phones.insert(phones.end(), known->second.begin(), known->second.end());
    }
    return phones;
  }

 private:
  std::string name_, transcripts_name_;
  std::map<std::string, Transcript, std::less<>> transcripts_;
  std::vector<std::string> paths_;
};

int64_t stacks_of(int64_t frames, int64_t stride) { return (frames + stride - 1) / stride; }

/// The frames that a path through the phones needs: one for each, and a blank between two equal ones.
int64_t frames_needed(const std::vector<int64_t>& phones) {
  auto needed = std::ssize(phones);
  for (size_t i = 1; i < phones.size(); ++i) needed += phones[i] == phones[i - 1];
  return needed;
}

/// HTK's difference of numbers [T, columns] at each frame, as in the class.
void add_differences(const float* from, int64_t frames, int64_t columns, int64_t stride, float* to) {
  const auto at = [=](int64_t t, int64_t k) { return from[std::clamp<int64_t>(t, 0, frames - 1) * stride + k]; };
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t k = 0; k < columns; ++k)
      to[t * stride + k] = (at(t + 1, k) - at(t - 1, k) + 2 * (at(t + 2, k) - at(t - 2, k))) / 10;
}

/// Mean and deviation of each number over all frames of some utterances.
struct Statistics {
  std::array<double, An4::kNumbers> sums{}, squares{};
  double frames = 0;

  void add(const Tensor& numbers) {
    const float* values = numbers.data<float>();
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      const auto k = static_cast<size_t>(i % An4::kNumbers);
      sums[k] += values[i];
      squares[k] += double{values[i]} * values[i];
    }
    frames += static_cast<double>(numbers.size(0));
  }
  void normalize(const Tensor& numbers) const {
    float* values = numbers.data<float>();
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      const auto k = static_cast<size_t>(i % An4::kNumbers);
      const double mean = sums[k] / frames, variance = squares[k] / frames - mean * mean;
      values[i] = static_cast<float>((values[i] - mean) / std::sqrt(std::max(variance, 1e-12)));
    }
  }
};

Tensor read_numbers(const Corpus& corpus, const std::string& path) {
  const auto file = corpus.open(join({"feat/", path, ".mfc"}));
  return an4_numbers(parse_mfc(read_whole(*file), file->name(), An4::kCepstra));
}

std::vector<An4::Utterance> read_utterances(const Corpus& corpus, Split split, const Pronunciations& dictionary,
                                            int64_t stride) {
  const Script script(corpus, split);
  std::vector<An4::Utterance> utterances;
  for (const std::string& path : script.paths()) {
    An4::Utterance utterance = {.frames = read_numbers(corpus, path),
                                .phones = script.phones(script.transcript(path), dictionary)};
    const int64_t stacks = stacks_of(utterance.frames.size(0), stride), needed = frames_needed(utterance.phones);
    check_input(stacks >= needed, "an4: utterance '", escaped(path), "' has ", stacks, " stacks of frames for ",
                utterance.phones.size(), " phones, expected ", needed, " or more: a smaller stride gives more");
    utterances.push_back(std::move(utterance));
  }
  return utterances;
}

}  // namespace

Tensor an4_numbers(const Tensor& cepstra) {
  const int64_t frames = cepstra.size(0);
  const Tensor numbers = Tensor::empty({frames, An4::kNumbers});
  const float* from = cepstra.data<float>();
  float* to = numbers.data<float>();
  for (int64_t t = 0; t < frames; ++t) std::copy_n(from + t * An4::kCepstra, An4::kKept, to + t * An4::kNumbers);
  for (int64_t order = 0; order < 2; ++order)
    add_differences(to + order * An4::kKept, frames, An4::kKept, An4::kNumbers, to + (order + 1) * An4::kKept);
  return numbers;
}

An4::An4(const fs::path& place, Split split, int64_t stride) : stride_(stride) {
  check_input(stride >= 1, "an4: stride ", stride, ", expected 1 or more");
  const Corpus corpus(place);
  const Pronunciations dictionary = read_pronunciations(*corpus.open("etc/an4.dic"), kPhones);
  Statistics statistics;
  utterances_ = read_utterances(corpus, Split::train, dictionary, stride);
  for (const Utterance& utterance : utterances_) statistics.add(utterance.frames);
  if (split == Split::test) utterances_ = read_utterances(corpus, Split::test, dictionary, stride);
  for (const Utterance& utterance : utterances_) statistics.normalize(utterance.frames);
}

std::vector<Field> An4::fields() const {
  return {{.name = "frames", .shape = {kFeatures}, .kind = FieldKind::sequence},
          {.name = "phones", .dtype = DType::i64, .kind = FieldKind::sequence}};
}

int64_t An4::length(int64_t index) const {
  return stacks_of(utterances_[static_cast<size_t>(index)].frames.size(0), stride_);
}

Sample An4::sample(int64_t index) const {
  check(0 <= index && index < size(), "an4: utterance ", index, " of ", size());
  const Utterance& utterance = utterances_[static_cast<size_t>(index)];
  const int64_t frames = utterance.frames.size(0), stacks = length(index);
  Sample sample = {{"frames", Tensor::empty({stacks, kFeatures})},
                   {"phones", Tensor::from({std::ssize(utterance.phones)}, utterance.phones)}};
  const float* from = utterance.frames.data<float>();
  float* to = sample.at("frames").data<float>();
  for (int64_t stack = 0; stack < stacks; ++stack)
    for (int64_t i = 0; i < kStacked; ++i, to += kNumbers) {
      const int64_t frame = std::clamp<int64_t>(stack * stride_ + i - kStacked / 2, 0, frames - 1);
      std::copy_n(from + frame * kNumbers, kNumbers, to);
    }
  return sample;
}

}  // namespace tern
