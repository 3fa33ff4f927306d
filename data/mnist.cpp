#include "tern/data/mnist.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tern/core/error.h"
#include "tern/data/idx.h"

namespace tern {
namespace {

constexpr int64_t kSide = 28;
constexpr int64_t kClasses = 10;

/// The file of `stem` ("train-images") and `kind` ("idx3-ubyte") under any of its spellings.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& stem, const std::string& kind) {
  std::string looked_for;
  for (const char* joint : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const auto name = stem + joint + kind + ending;
      if (std::filesystem::is_regular_file(folder / name)) return folder / name;
      looked_for += (looked_for.empty() ? "" : ", ") + name;
    }
  }
  fail_input({"mnist: nothing in ", folder.string(), " is called ", looked_for});
}

}  // namespace

MemoryDataset load_mnist(const std::filesystem::path& folder, Split split) {
  check_input(std::filesystem::is_directory(folder), "mnist: ", folder.string(), " is not a folder");
  const std::string stem = split == Split::train ? "train" : "t10k";
  const auto images_path = find_file(folder, stem + "-images", "idx3-ubyte");
  const auto labels_path = find_file(folder, stem + "-labels", "idx1-ubyte");

  IdxArray images = read_idx(images_path, 3);
  check_input(images.extents[1] == kSide && images.extents[2] == kSide, images_path.string(), ": images of ",
              images.extents[1], "x", images.extents[2], " at offset 8, expected ", kSide, "x", kSide);
  IdxArray labels = read_idx(labels_path, 1);
  check_input(labels.extents[0] == images.extents[0], labels_path.string(), ": ", labels.extents[0],
              " labels at offset 4, but ", images_path.string(), " has ", images.extents[0], " images");
  const auto wrong = std::ranges::find_if(labels.values, [](uint8_t label) { return label >= kClasses; });
  if (wrong != labels.values.end()) {
    const auto index = wrong - labels.values.begin();
    fail_input({labels_path.string(), ": label ", *wrong, " of example ", index, " at offset ", 8 + index,
                ", expected 0 to ", kClasses - 1});
  }
  return {{.channels = 1, .height = kSide, .width = kSide, .classes = kClasses},
          std::move(images.values),
          std::move(labels.values)};
}

}  // namespace tern
