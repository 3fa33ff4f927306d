#include "tern/data/dataset.h"

#include <algorithm>
#include <utility>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/core/parallel.h"

namespace tern {

uint32_t Dataset::fingerprint() const {
  uint32_t crc = 0;
  const auto add = [&](const auto& values) { crc = crc32c(std::as_bytes(std::span(values)), crc); };
  for (int64_t i = 0; i < size(); ++i)
    for (const auto& [name, tensor] : sample(i)) {
      if (!tensor.defined()) continue;
      check_input(tensor.device() == Device{}, "data set '", this->name(), "', sample ", i, ": field '", name,
                  "' is on ", tensor.device(), ", expected on ", Device{});
      const int64_t sizes[] = {std::ssize(name), static_cast<int64_t>(tensor.dtype()), tensor.rank()};
      add(sizes);
      add(name);
      add(tensor.shape());
      add(std::span(static_cast<const std::byte*>(tensor.raw_data()), tensor.bytes()));
    }
  return crc;
}

TensorDataset::TensorDataset(NamedTensors tensors) : tensors_(std::move(tensors)) {
  check_input(!tensors_.empty(), "tensor data set: no tensors, expected one or more");
  const auto& [first_name, first] = *tensors_.begin();
  for (auto& [name, tensor] : tensors_) {
    check_input(tensor.defined() && tensor.rank() > 0, "tensor data set: '", name, "' has no rows, expected [N, ...]");
    check_input(tensor.device() == Device{}, "tensor data set: '", name, "' is on ", tensor.device(), ", expected on ",
                Device{});
    check_input(tensor.size(0) == first.size(0), "tensor data set: '", name, "' has ", tensor.size(0),
                " rows, expected ", first.size(0), " as in '", first_name, "'");
    tensor = tensor.to(MemoryFormat::row_major);
  }
  size_ = first.size(0);
}

std::vector<Field> TensorDataset::fields() const {
  std::vector<Field> fields;
  for (const auto& [name, tensor] : tensors_)
    fields.push_back({.name = name,
                      .dtype = tensor.dtype(),
                      .shape = Shape(std::span(tensor.shape().begin() + 1, tensor.shape().end()))});
  return fields;
}

Sample TensorDataset::sample(int64_t index) const {
  check(0 <= index && index < size_, "tensor data set: sample ", index, " of ", size_);
  Sample sample;
  for (const auto& [name, tensor] : tensors_)
    sample.emplace(name,
                   tensor.slice(index, index + 1).reshape(std::span(tensor.shape().begin() + 1, tensor.shape().end())));
  return sample;
}

std::vector<Field> ImageDataset::fields() const {
  const ImageSpec images = spec();
  return {{.name = "image", .dtype = DType::u8, .shape = {images.height, images.width, images.channels}},
          {.name = "label", .dtype = DType::i64}};
}

Sample ImageDataset::sample(int64_t index) const {
  const ImageSpec images = spec();
  const Tensor pixels = Tensor::empty({images.height, images.width, images.channels}, {.dtype = DType::u8});
  const Tensor label = Tensor::empty({}, {.dtype = DType::i64});
  *label.data<int64_t>() = read(index, pixels.span<uint8_t>());
  return {{"image", pixels}, {"label", label}};
}

uint32_t ImageDataset::fingerprint() const {
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
  check(wrong == labels_.end(), "dataset: example ", wrong - labels_.begin(), " has the label ",
        wrong == labels_.end() ? 0 : int{*wrong}, ", expected 0 to ", spec_.classes - 1);
}

int64_t MemoryDataset::read(int64_t index, std::span<uint8_t> pixels) const {
  check(0 <= index && index < size(), "dataset: example ", index, " of ", size());
  check(static_cast<int64_t>(pixels.size()) == spec_.numel(), "dataset: room for ", pixels.size(),
        " bytes of pixels, an example has ", spec_.numel());
  std::copy_n(pixels_.begin() + index * spec_.numel(), pixels.size(), pixels.begin());
  return labels_[static_cast<size_t>(index)];
}

MemoryDataset draw_dataset(const ImageSpec& spec, int64_t size,
                           const std::function<int64_t(int64_t index, std::span<uint8_t> pixels)>& draw) {
  const auto count = static_cast<size_t>(size), numel = static_cast<size_t>(spec.numel());
  const int64_t most = std::min<int64_t>(spec.classes, 256);  // a label has 8 bits
  std::vector<uint8_t> pixels(count * numel), labels(count);
  parallel_for(0, size, 100, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const std::span own(pixels.data() + static_cast<size_t>(i) * numel, numel);
      const int64_t label = draw(i, own);
      check(0 <= label && label < most, "dataset: example ", i, " has the label ", label, ", expected 0 to ", most - 1);
      labels[static_cast<size_t>(i)] = static_cast<uint8_t>(label);
    }
  });
  return {spec, std::move(pixels), std::move(labels)};
}

}  // namespace tern
