#include "tern/trainer/run/batch_feed.h"

#include <algorithm>
#include <utility>

namespace tern::trainer {

std::unique_ptr<DeviceImages> DeviceImages::make(const Dataset& data, const Transform& transform, Device device) {
  constexpr int64_t kMostBytes = int64_t{512} << 20;
  const auto* images = dynamic_cast<const ImageDataset*>(&data);
  if (!images || device.type != DeviceType::cuda || images->spec().channels > kernels::kMostImageChannels)
    return nullptr;
  const bool is_small = images->size() * images->spec().numel() <= kMostBytes;
  return std::make_unique<DeviceImages>(*images, transform, device, is_small);
}

DeviceImages::DeviceImages(const ImageDataset& data, const Transform& transform, Device device, bool resident)
    : input_(data.spec()),
      output_(transform.output(input_)),
      map_{.pad = transform.pad,
           .reflect_pad = transform.reflect_pad,
           .standardize = transform.standardize,
           .mean = transform.mean,
           .deviation = transform.deviation,
           .cutout = transform.cutout} {
  if (!resident) return;
  const auto size = static_cast<size_t>(input_.numel());
  const Tensor pixels =
      Tensor::empty(pixels_shape(data.size()), {.dtype = DType::u8, .format = MemoryFormat::channels_last});
  for (int64_t i = 0; i < data.size(); ++i)
    data.read(i, pixels.span<uint8_t>().subspan(static_cast<size_t>(i) * size, size));
  resident_ = pixels.to(device);
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
      upload_(device.type == DeviceType::cpu ? nullptr : device_backend(device).make_upload()) {}

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
    if (images_) images_->make(ahead_->indices(), pixels_ahead_, draws_ahead_, images_ahead_);
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
  NamedTensors fields;
  for (const auto& [name, tensor] : batch->tensors()) fields.emplace(name, bring(to.fields[name], tensor));
  if (images_) {
    constexpr MemoryFormat kFormat = MemoryFormat::channels_last;
    draws_ahead_ = bring(to.draws, DeviceImages::draws(batch->augmentations));
    if (batch->pixels) {
      pixels_ahead_ = room(to.pixels, images_->pixels_shape(batch->size()), {.dtype = DType::u8, .format = kFormat});
      upload_->copy(pixels_ahead_.raw_data(), std::move(batch->pixels), pixels_ahead_.bytes());
    }
    images_ahead_ = room(to.fields["image"], images_->images_shape(batch->size()), {.format = kFormat});
    fields.emplace("image", images_ahead_);
  }
  ahead_.emplace(Batch(bring(to.indices, batch->indices()), std::move(fields)), *batch, precision_, loader_.name());
}

/// Copies `source` to the device, into a buffer that is reused for the batches that fit.
Tensor BatchFeed::bring(Tensor& buffer, const Tensor& source) {
  const Tensor to = room(buffer, source.shape(), source.options());
  if (source.bytes() > 0) upload_->copy(to.raw_data(), source.raw_data(), source.bytes());
  return to;
}

Tensor BatchFeed::room(Tensor& buffer, const Shape& shape, const TensorOptions& options) {
  // A row-major buffer is flat, so that any shape of as many elements fits. The longest sequence differs from batch to
  // batch.
  const bool flat = options.format == MemoryFormat::row_major;
  const Shape needed = flat ? Shape{shape.numel()} : shape;
  const auto fits = [&] {
    return buffer.defined() && buffer.size(0) >= needed[0] &&
           std::equal(buffer.shape().begin() + 1, buffer.shape().end(), needed.begin() + 1, needed.end());
  };
  if (!fits()) {
    buffer = Tensor::empty(needed, {options.dtype, device_, options.format});
    upload_->follow();  // kernels may still use a freed block that the allocator gives out again
  }
  const Tensor used = buffer.slice(0, needed[0]);
  return flat ? used.reshape(shape) : used;
}

}  // namespace tern::trainer
