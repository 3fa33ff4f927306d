#include "tern/data/transcript.h"

#include <algorithm>
#include <set>

#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/data/text.h"

namespace tern {
namespace {

/// Calls visit(number, words) for each line that is not blank.
template <class Visit>
void for_each_line(ByteSource& source, Visit visit) {
  const std::string text = read_text(source);
  int64_t number = 0;
  for (const std::string_view line : split_at(text, '\n')) {
    ++number;
    const auto words = words_in(line);
    if (!words.empty()) visit(number, words);
  }
}

bool is_mark(std::string_view word) { return word == "<s>" || word == "</s>" || word == "<sil>"; }

/// Whether the word is another pronunciation: "WORD(2)".
bool is_alternative(std::string_view word) {
  const size_t open = word.find('(');
  return word.ends_with(')') && open != std::string_view::npos && open > 0;
}

}  // namespace

std::vector<Transcript> read_transcripts(ByteSource& source) {
  std::vector<Transcript> transcripts;
  std::set<std::string> utterances;
  for_each_line(source, [&](int64_t number, const std::vector<std::string_view>& words) {
    const std::string_view last = words.back();
    check_input(last.size() > 2 && last.front() == '(' && last.back() == ')', source.name(), ": line ", number,
                ": found '", escaped(last), "' at the end, expected the utterance's name in parentheses");
    Transcript& transcript = transcripts.emplace_back();
    transcript.line = number;
    transcript.utterance = last.substr(1, last.size() - 2);
    for (size_t i = 0; i + 1 < words.size(); ++i)
      if (!is_mark(words[i])) transcript.words.emplace_back(words[i]);
    check_input(utterances.insert(transcript.utterance).second, source.name(), ": line ", number, ": utterance '",
                escaped(transcript.utterance), "' has a second transcript, expected one");
  });
  return transcripts;
}

Pronunciations read_pronunciations(ByteSource& source, std::span<const std::string_view> phones) {
  Pronunciations found;
  for_each_line(source, [&](int64_t number, const std::vector<std::string_view>& words) {
    const auto check_line = [&](bool good, const auto&... found_and_expected) {
      check_input(good, source.name(), ": line ", number, ": ", found_and_expected...);
    };
    const std::string word(words.front());
    check_line(words.size() > 1, "found the word '", escaped(word), "' alone, expected its phones behind it");
    std::vector<int64_t> sounds;
    for (size_t i = 1; i < words.size(); ++i) {
      const auto phone = std::ranges::find(phones, words[i]);
      check_line(phone != phones.end(), "found '", escaped(words[i]), "', expected one of the ", phones.size(),
                 " phones");
      sounds.push_back(phone - phones.begin());
    }
    if (is_alternative(word)) return;
    check_line(found.emplace(word, std::move(sounds)).second, "the word '", escaped(word),
               "' has a second line, expected WORD(2) for another pronunciation");
  });
  return found;
}

}  // namespace tern
