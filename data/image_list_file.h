#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tern {

/// "cats/1.jpg 0"
struct ImageLine {
  int64_t number = 0;  ///< from 1
  std::string path;
  int64_t label = 0;
};

/// The lines of a list of pictures; empty ones are passed over. An InputError names the line that is none.
std::vector<ImageLine> read_image_lines(const std::filesystem::path& list);

/// How many labels there are in `list`: two or more, from 0 on without a gap, or else there is an InputError.
int64_t count_image_classes(const std::filesystem::path& list);

}  // namespace tern
