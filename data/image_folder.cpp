#include "tern/data/image_folder.h"

#include <algorithm>
#include <utility>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/data/byte_source.h"
#include "tern/data/image.h"
#include "tern/data/image_decoder.h"

namespace tern {
namespace {

constexpr int kChannels = 3;

}  // namespace

ImageFolder::ImageFolder(ImageList list, const ImageFolderOptions& options)
    : list_(std::move(list)), options_(options) {
  check(options.side > 0, "image folder: images of ", options.side, " pixels a side, expected 1 or more");
}

ImageSpec ImageFolder::spec() const {
  return {.channels = kChannels, .height = options_.side, .width = options_.side, .classes = std::ssize(list_.classes)};
}

int64_t ImageFolder::read(int64_t index, std::span<uint8_t> pixels) const {
  check(0 <= index && index < size(), "image folder: example ", index, " of ", size());
  check(std::ssize(pixels) == spec().numel(), "image folder: room for ", pixels.size(),
        " bytes of pixels, an example has ", spec().numel());
  const size_t count = list_.files.size();
  for (size_t tried = 0; tried < count; ++tried) {
    const size_t place = (static_cast<size_t>(index) + tried) % count;
    if (read_one(place, pixels)) return list_.files[place].label;
  }
  fail_input({"images: none of ", count, " files can be read: ", unread().front()});
}

bool ImageFolder::read_one(size_t index, std::span<uint8_t> pixels) const {
  if (cache_ && cache_->read(index, pixels)) return true;
  try {
    decode(list_.files[index], pixels);
    return true;
  } catch (const InputError& error) {
    const std::lock_guard lock(mutex_);
    unread_.emplace(index, escaped(error.what()));
    return false;
  }
}

void ImageFolder::decode(const ImageFile& file, std::span<uint8_t> pixels) const {
  const DecodedImage decoded = decode_image(read_bytes(file.path), file.path.string(), kChannels);
  const int side = options_.side;
  const ImageView part = options_.fit == Fit::crop ? middle(decoded.view(), side, side) : decoded.view();
  resize(part, side, side, pixels);
  if (decoded.orientation() == 1) return;
  const Image square{.width = side, .height = side, .channels = kChannels, .values = {pixels.begin(), pixels.end()}};
  std::ranges::copy(upright(square.view(), decoded.orientation()).values, pixels.begin());
}

uint32_t ImageFolder::fingerprint() const {
  Checksum sum;
  sum.add(options_.side);
  sum.add(static_cast<int64_t>(options_.fit));
  for (const ImageFile& file : list_.files) {
    sum.add(list_.classes[static_cast<size_t>(file.label)]);
    sum.add(file.path.filename().string());
    sum.add(static_cast<int64_t>(file.bytes));
  }
  return sum.value();
}

std::vector<std::string> ImageFolder::unread() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> examples;
  for (const auto& [index, why] : unread_) examples.push_back(why);
  return examples;
}

void ImageFolder::use_cache(const std::filesystem::path& path, const ImageCache::Progress& progress) {
  Checksum made_of;
  made_of.add(options_.side);
  made_of.add(static_cast<int64_t>(options_.fit));
  for (const ImageFile& file : list_.files) {
    made_of.add(std::filesystem::absolute(file.path).string());
    made_of.add(static_cast<int64_t>(file.bytes));
    made_of.add(file.modified_ns);
  }
  const ImageCacheKey key{.made_of = made_of.value(),
                          .examples = list_.files.size(),
                          .example_bytes = static_cast<uint64_t>(spec().numel())};
  cache_ = ImageCache::open_or_make(
      path, key, [this](size_t i, std::span<uint8_t> to) { return read_one(i, to); }, progress);
}

}  // namespace tern
