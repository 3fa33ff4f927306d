#include "tern/apps/trainer/batch_feed.h"

#include <utility>

namespace tern {

BatchFeed::BatchFeed(DataLoader& loader, Device device)
    : loader_(loader),
      device_(device),
      upload_(device.type == DeviceType::cpu ? nullptr : device_backend(device).make_upload()) {}

BatchFeed::~BatchFeed() { reset(); }

void BatchFeed::reset() {
  if (ahead_ && upload_) upload_->join();  // its memory is written until then
  ahead_.reset();
}

std::optional<FedBatch> BatchFeed::next() {
  fetch();
  if (ahead_ && upload_) {
    upload_->join();
    // Kernels that read the other buffers, of the batch before, are all issued.
    upload_->follow();
  }
  return std::exchange(ahead_, std::nullopt);
}

void BatchFeed::fetch() {
  if (ahead_) return;
  auto batch = loader_.next();
  if (!batch) return;
  if (!upload_) {
    ahead_ = {batch->images, batch->labels, batch->indices, batch->labels};
    return;
  }
  Buffers& to = buffers_[std::exchange(turn_, 1 - turn_)];
  ahead_ = {bring(to.images, batch->images), bring(to.labels, batch->labels), bring(to.indices, batch->indices),
            batch->labels};
}

/// `source` on the device, in the first rows of a buffer that is kept from batch to batch.
Tensor BatchFeed::bring(Tensor& buffer, const Tensor& source) {
  if (!buffer.defined() || buffer.size(0) < source.size(0)) {
    buffer = Tensor::empty(source.shape(), {source.dtype(), device_, source.format()});
    upload_->follow();  // a block that kernels gave back may still be in use by them
  }
  const Tensor rows = buffer.slice(0, source.size(0));
  upload_->copy(rows.raw_data(), source.raw_data(), source.bytes());
  return rows;
}

}  // namespace tern
