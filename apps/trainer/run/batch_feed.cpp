#include "tern/trainer/run/batch_feed.h"

#include <algorithm>
#include <utility>

#include "tern/core/parallel.h"
#include "tern/kernels/libraries.h"
#include "tern/layers/conv2d.h"

namespace tern::trainer {

int64_t image_channel_multiple(Module& model, DType activations) {
  const bool takes_spare = std::ranges::any_of(model.modules(), [](const auto& named) {
    const auto* layer = dynamic_cast<const Conv2d*>(named.module);
    return layer != nullptr && layer->takes_spare_channels();
  });
  return activations == DType::bf16 && takes_spare ? 8 : 1;
}

MemoryFormat image_format(Device device, DType activations) {
  const bool is_strict = activations == DType::f32 && !kernels::library_rules(device).tf32;
  return is_strict ? MemoryFormat::row_major : MemoryFormat::channels_last;
}

std::unique_ptr<DeviceImages> DeviceImages::make(const Dataset& data, const Transform& transform, Device device,
                                                 int64_t channel_multiple) {
  constexpr int64_t kMostBytes = int64_t{512} << 20;
  const auto* images = dynamic_cast<const ImageDataset*>(&data);
  if (!images || device.type != DeviceType::cuda || images->spec().channels > kernels::kMostImageChannels)
    return nullptr;
  const bool is_small = images->size() * images->spec().numel() <= kMostBytes;
  return std::make_unique<DeviceImages>(*images, transform, device, is_small, channel_multiple);
}

DeviceImages::DeviceImages(const ImageDataset& data, const Transform& transform, Device device, bool resident,
                           int64_t channel_multiple)
    : input_(data.spec()),
      output_(transform.output(input_)),
      map_{.pad = transform.pad,
           .reflect_pad = transform.reflect_pad,
           .standardize = transform.standardize,
           .mean = transform.mean,
           .deviation = transform.deviation,
           .cutout = transform.cutout} {
  output_.channels = (output_.channels + channel_multiple - 1) / channel_multiple * channel_multiple;
  if (!resident) return;
  const auto size = static_cast<size_t>(input_.numel());
  const Tensor pixels =
      Tensor::empty(pixels_shape(data.size()), {.dtype = DType::u8, .format = MemoryFormat::channels_last});
  std::vector<int64_t> labels(static_cast<size_t>(data.size()));
  parallel_for(0, data.size(), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i)
      labels[i] = data.read(static_cast<int64_t>(i), pixels.span<uint8_t>().subspan(i * size, size));
  });
  resident_ = pixels.to(device);
  labels_ = std::make_shared<const std::vector<int64_t>>(std::move(labels));
}

Tensor DeviceImages::draws(const std::vector<Augmentation>& augmentations) {
  const Tensor draws = Tensor::empty({std::ssize(augmentations), kernels::kImageDraws}, {.dtype = DType::f64});
  double* to = draws.data<double>();
  for (const auto& [top, left, flip, brightness, contrast, saturation, height, width, cut_top, cut_left] :
       augmentations)
    for (const double draw : {double(top), double(left), double(flip), double(brightness), double(contrast),
                              double(saturation), double(height), double(width), double(cut_top), double(cut_left)})
      *to++ = draw;
  return draws;
}

BatchFeed::BatchFeed(DataLoader& loader, Device device, DType precision, const DeviceImages* images)
    : loader_(loader),
      device_(device),
      precision_(precision),
      images_(images),
      upload_(device.type == DeviceType::cpu ? nullptr : device_backend(device).make_upload()) {
  if (upload_) upload_->follow();  // the pixels of `images` may still be on their way
}

BatchFeed::~BatchFeed() { reset(); }

void BatchFeed::reset() {
  if (ahead_ && upload_) {
    upload_->join();    // until then, its memory is written
    turn_ = 1 - turn_;  // reuse this batch's buffers: kernels may still read the others
  }
  ahead_.reset();
}

std::optional<DeviceBatch> BatchFeed::next() {
  fetch();
  if (ahead_ && upload_) {
    upload_->join();
    // All kernels that read the other buffers, of the batch before, are already issued.
    upload_->follow();
  }
  return std::exchange(ahead_, std::nullopt);
}

void BatchFeed::fetch() {
  if (ahead_) return;
  auto batch = loader_.next();
  if (!batch) return;
  if (!upload_) {
    ahead_.emplace(*batch, *batch, precision_, loader_.name());
    return;
  }
  Buffers& to = buffers_[std::exchange(turn_, 1 - turn_)];
  std::vector<Tensor> sources = {batch->indices()};
  for (const auto& [name, tensor] : batch->tensors()) sources.push_back(tensor);
  if (images_) sources.push_back(DeviceImages::draws(batch->augmentations));
  const std::vector<Tensor> brought = bring(to.fields, sources);
  NamedTensors fields;
  size_t next = 1;
  for (const auto& [name, tensor] : batch->tensors()) fields.emplace(name, brought[next++]);
  if (images_) fields.emplace("image", make_images(to, brought.front(), brought.back(), std::move(batch->pixels)));
  ahead_.emplace(Batch(brought.front(), std::move(fields)), *batch, precision_, loader_.name());
}

/// Copies `sources` to the device, into one buffer.
std::vector<Tensor> BatchFeed::bring(Tensor& buffer, const std::vector<Tensor>& sources) {
  constexpr size_t kAlignment = 64;
  std::vector<Upload::Part> parts;
  size_t end = 0;
  for (const Tensor& source : sources) {
    parts.push_back({.offset = end, .source = source.raw_data(), .bytes = source.bytes()});
    end += (source.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  const Tensor& memory = grow(buffer, end);
  upload_->copy(memory.raw_data(), parts);
  std::vector<Tensor> brought;
  for (size_t i = 0; i < sources.size(); ++i)
    brought.push_back(memory.view(parts[i].offset, sources[i].shape(), sources[i].dtype(), sources[i].format()));
  return brought;
}

/// The images of a batch, of its pixels if it has `bytes`.
Tensor BatchFeed::make_images(Buffers& to, const Tensor& indices, const Tensor& draws, std::shared_ptr<void> bytes) {
  Tensor pixels;
  if (bytes) {
    const Shape shape = images_->pixels_shape(indices.size(0));
    const auto count = static_cast<size_t>(shape.numel());
    pixels = grow(to.pixels, count).view(0, shape, DType::u8, MemoryFormat::channels_last);
    upload_->copy(pixels.raw_data(), std::move(bytes), count);
  }
  const Shape shape = images_->images_shape(indices.size(0));
  Tensor images = grow(to.images, static_cast<size_t>(shape.numel()) * size_of(precision_))
                      .view(0, shape, precision_, image_format(device_, precision_));
  upload_->run([&] { images_->make(indices, pixels, draws, images); });
  return images;
}

/// The buffer, with at least this size.
const Tensor& BatchFeed::grow(Tensor& buffer, size_t bytes) {
  if (!buffer.defined() || buffer.bytes() < bytes) {
    buffer = Tensor::empty({static_cast<int64_t>(bytes)}, {.dtype = DType::u8, .device = device_});
    upload_->follow();  // kernels may still use a freed block that the allocator gives out again
  }
  return buffer;
}

}  // namespace tern::trainer
