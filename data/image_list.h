#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tern/data/dataset.h"

namespace tern {

/// A line of a list of pictures, such as "cats/1.jpg 0".
struct ImageLine {
  int64_t number = 0;  ///< line number, from 1
  std::string path;
  int64_t label = 0;
};

/// Reads a list of pictures; skips empty lines. Throws InputError, with the line number, if a line is wrong, and if the
/// file cannot be read or has no line.
std::vector<ImageLine> read_image_lines(const std::filesystem::path& list);

/// Number of different labels in `list`. Throws InputError unless there are two or more and they are 0, 1, 2, ...
/// without a gap.
int64_t count_image_classes(const std::filesystem::path& list);

/// A labelled picture file.
struct ImageFile {
  std::filesystem::path path;
  int64_t label = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  ///< time of the last change, since 1970
};

/// The pictures of one split: class by class, or in the order of their list.
struct ImageList {
  std::vector<std::string> classes;  ///< names, indexed by label
  std::vector<ImageFile> files;
};

/// Finds the pictures of a split. `place` is one of these; the first that matches counts:
/// - a file with a line "PATH LABEL" per picture; PATH is relative to that file's folder, LABEL counts from 0;
/// - a folder with such files: train.txt, and val.txt or test.txt;
/// - a folder with train/, and val/ or test/; each holds one folder per class, labelled in the order of their names;
/// - a folder with one folder per class.
/// In a class's folder, pictures are files at any depth with the endings .jpg, .jpeg, .png, .bmp, .gif, .pgm or .ppm.
/// Names that begin with a dot are skipped. A link that leads back to a folder above it is listed as a picture, which
/// cannot be read. If there is no place for testing, of each class the pictures 2, 12, 22, ... (by name or by place in
/// the list) are for testing and the others for training. Throws InputError unless there are two or more classes, the
/// labels have no gap, each class has pictures, and each file of a list exists; also if val or test is a folder of
/// another form than train.
ImageList list_images(const std::filesystem::path& place, Split split);

/// Returns `ImageList::classes` only; does not look at each picture.
std::vector<std::string> list_image_classes(const std::filesystem::path& place);

}  // namespace tern
