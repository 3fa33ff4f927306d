#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tern/data/dataset.h"

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

/// A labelled picture, as it lies there.
struct ImageFile {
  std::filesystem::path path;
  int64_t label = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  ///< since 1970
};

/// The pictures of one split, class after class or in the order of their list.
struct ImageList {
  std::vector<std::string> classes;  ///< names by label
  std::vector<ImageFile> files;
};

/// Finds pictures where `place` is one of these, the first that fits:
/// - a file with a line "PATH LABEL" for each, PATH from its folder on and LABEL from 0 on;
/// - a folder with such files, train.txt, and val.txt or test.txt;
/// - a folder with train/, and val/ or test/, each with a folder for each class, labelled in the order of their names;
/// - a folder with a folder for each class.
/// In folders pictures have the endings .jpg, .jpeg, .png, .bmp, .gif, .pgm, .ppm, at any depth; names that begin with
/// a dot are passed over, links that lead back, or to a folder above, listed as pictures, which then cannot be read.
/// Where nothing is there for testing, it gets of each class the pictures 2, 12, 22, ..., by name or place in the list,
/// and training the others. An InputError says what was found and what was expected: two classes or more, labels that
/// follow on one another, pictures for each class, and in a list no file that is missing.
ImageList list_images(const std::filesystem::path& place, Split split);

/// `ImageList::classes` alone, without a look at each picture.
std::vector<std::string> list_image_classes(const std::filesystem::path& place);

}  // namespace tern
