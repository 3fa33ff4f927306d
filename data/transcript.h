#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/data/byte_source.h"

// The text files of a speech corpus in the form of CMU Sphinx. All functions throw InputError with the file, the line,
// what was found and what was expected.

namespace tern {

/// What someone says in an utterance: a line "TWO SIX (cen7-fash-b)".
struct Transcript {
  std::vector<std::string> words;  ///< without the marks "<s>", "</s>" and "<sil>"
  std::string utterance;           ///< "cen7-fash-b"
  int64_t line = 0;                ///< its number, from 1 on
};
/// Reads a file of transcripts: one in each line that is not blank. No utterance has two.
std::vector<Transcript> read_transcripts(ByteSource& source);

/// The phones of each word, as indices into a list of phones.
using Pronunciations = std::map<std::string, std::vector<int64_t>, std::less<>>;
/// Reads a dictionary: in each line that is not blank, a word and its phones. A word has one line, and may have others
/// as "WORD(2)", which do not count.
Pronunciations read_pronunciations(ByteSource& source, std::span<const std::string_view> phones);

}  // namespace tern
