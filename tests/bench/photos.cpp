#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <memory>

#include "tern/core/random.h"
#include "tern/data/image_folder.h"
#include "tests/bench/case.h"
#include "tests/support/file_bytes.h"
#include "tests/support/pictures.h"
#include "tests/support/temporary_folder.h"

namespace tern::bench {
namespace {

/// A picture of ImageNet's usual size. Noise makes its file as long as the file of a photograph in ImageNet: 110 kB.
std::string photo() {
  Image image = test_picture(500, 375);
  const RandomStream random({.seed = 1});
  for (size_t i = 0; i < image.values.size(); ++i)
    image.values[i] =
        static_cast<uint8_t>(std::clamp<int>(image.values[i] + static_cast<int>(random.below(i / 3, 41)) - 20, 0, 255));
  return jpeg_bytes(image, 90);
}

/// A picture in a file. `run` reads it as an example of 256×256.
class Folder {
 public:
  explicit Folder(const std::string& file) {
    const auto path = folder_.path() / "photo.jpg";
    write_file(path, file);
    images_.emplace(ImageList{.classes = {"photo"}, .files = {{.path = path}}}, ImageFolderOptions{.side = 256});
  }
  void run() { images_->read(0, pixels_); }

 private:
  TemporaryFolder folder_;
  std::optional<ImageFolder> images_;
  std::vector<uint8_t> pixels_ = std::vector<uint8_t>(256 * 256 * 3);
};

}  // namespace

// Each case handles one picture on one thread. The first case only decodes the picture with stb_image. The second case
// reads the file, decodes the picture and resizes it.
void add_photos(std::vector<Case>& cases) {
  cases.push_back({"load/photo/stb_image/t1", 1, [] {
                     return [file = photo()] {
                       int width, height, channels;
                       stbi_image_free(stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(file.data()),
                                                             static_cast<int>(file.size()), &width, &height, &channels,
                                                             3));
                     };
                   }});
  cases.push_back({"load/photo/folder/256/t1", 1, [] {
                     const auto folder = std::make_shared<Folder>(photo());
                     return [folder] { folder->run(); };
                   }});
}

}  // namespace tern::bench
