#include "tern/dist/exchange_plan.h"

namespace tern {

std::vector<CodedTensor> coded_tensors(const GradientCodec& codec, std::span<const Shape> shapes) {
  std::vector<CodedTensor> tensors;
  for (const Shape& shape : shapes) tensors.push_back({shape, codec.most_bytes(shape)});
  return tensors;
}

int64_t elements_of(std::span<const CodedTensor> message) {
  int64_t elements = 0;
  for (const CodedTensor& tensor : message) elements += tensor.shape.numel();
  return elements;
}

double ExchangePlan::encoded() const {
  double elements = 0;
  for (const ExchangePhase& phase : phases) elements += phase.encoded;
  return elements;
}

double ExchangePlan::decoded() const {
  double elements = 0;
  for (const ExchangePhase& phase : phases) elements += phase.decoded;
  return elements;
}

int64_t ExchangePlan::sent() const {
  int64_t bytes = 0;
  for (const ExchangePhase& phase : phases)
    if (phase.payload) bytes += phase.wire.sent;
  return bytes;
}

}  // namespace tern
