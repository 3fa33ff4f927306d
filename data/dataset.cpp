#include "tern/data/dataset.h"

#include <algorithm>
#include <utility>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"

namespace tern {

uint32_t Dataset::fingerprint() const {
  std::vector<uint8_t> pixels(static_cast<size_t>(spec().numel()));
  uint32_t crc = 0;
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t label = read(i, pixels);
    crc = crc32c(std::as_bytes(std::span(pixels)), crc);
    crc = crc32c(std::as_bytes(std::span(&label, 1)), crc);
  }
  return crc;
}

MemoryDataset::MemoryDataset(const ImageSpec& spec, std::vector<uint8_t> pixels, std::vector<uint8_t> labels)
    : spec_(spec), pixels_(std::move(pixels)), labels_(std::move(labels)) {
  check(static_cast<int64_t>(pixels_.size()) == size() * spec_.numel(), "dataset: ", pixels_.size(),
        " bytes of pixels for ", size(), " examples of ", spec_.numel());
  const auto wrong = std::ranges::find_if(labels_, [&](uint8_t label) { return label >= spec_.classes; });
  check(wrong == labels_.end(), "dataset: example ", wrong - labels_.begin(),
        " has a label out of range, expected 0 to ", spec_.classes - 1);
}

int64_t MemoryDataset::read(int64_t index, std::span<uint8_t> pixels) const {
  check(0 <= index && index < size(), "dataset: example ", index, " of ", size());
  check(static_cast<int64_t>(pixels.size()) == spec_.numel(), "dataset: room for ", pixels.size(),
        " bytes of pixels, an example has ", spec_.numel());
  std::copy_n(pixels_.begin() + index * spec_.numel(), pixels.size(), pixels.begin());
  return labels_[static_cast<size_t>(index)];
}

}  // namespace tern
