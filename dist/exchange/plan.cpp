#include "tern/dist/exchange/plan.h"

#include <algorithm>
#include <numeric>

#include "tern/dist/comm/collectives.h"

namespace tern {
namespace {

int64_t sum(std::span<const int64_t> parts) { return std::accumulate(parts.begin(), parts.end(), int64_t{0}); }

/// Returns `load`, or an empty load if no bytes travel.
WireLoad unless_empty(const WireLoad& load) { return load.sent == 0 ? WireLoad{} : load; }

}  // namespace

WireLoad all_reduce_load(int64_t bytes, int ranks) {
  if (detail::takes_one_message(bytes, ranks))
    return all_to_all_load(std::vector<int64_t>(static_cast<size_t>(ranks), bytes));
  const int64_t times = 2 * (ranks - 1);
  return unless_empty({.busiest = static_cast<double>(times * bytes) / ranks,
                       .hops = detail::goes_directly(bytes, ranks) ? 2 : times,
                       .sent = times * bytes,
                       .first = static_cast<double>(times * bytes) / ranks});
}

WireLoad all_gather_load(std::span<const int64_t> parts) {
  const auto others = static_cast<int64_t>(parts.size()) - 1;
  const int64_t all = sum(parts);
  if (detail::goes_directly(all, static_cast<int>(parts.size()))) {
    WireLoad load = all_to_all_load(parts);
    load.first = static_cast<double>(others * parts.front());
    return load;
  }
  // A rank receives all parts except its own, so the cable into the rank with the smallest part is the busiest.
  return unless_empty({.busiest = static_cast<double>(all - std::ranges::min(parts)),
                       .hops = others,
                       .sent = others * all,
                       .first = static_cast<double>(all - parts[1 % parts.size()])});
}

WireLoad all_to_all_load(std::span<const int64_t> parts) {
  const auto others = static_cast<int64_t>(parts.size()) - 1;
  const int64_t all = sum(parts), most = std::max(others * std::ranges::max(parts), all - std::ranges::min(parts));
  return unless_empty({.busiest = static_cast<double>(most),
                       .hops = 1,
                       .sent = others * all,
                       .first = static_cast<double>(all - parts.front())});
}

WireLoad shift_load(std::span<const int64_t> parts) {
  return unless_empty({.busiest = static_cast<double>(std::ranges::max(parts)),
                       .hops = 1,
                       .sent = sum(parts),
                       .first = static_cast<double>(parts.front())});
}

WireLoad gather_load(std::span<const int64_t> parts) {
  const int64_t others = sum(parts) - parts.front();
  return unless_empty({.busiest = static_cast<double>(others), .hops = 1, .sent = others});
}

WireLoad scatter_load(std::span<const int64_t> parts) {
  WireLoad load = gather_load(parts);
  load.first = load.busiest;
  return load;
}

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

double ExchangePlan::sent_by_first() const {
  double bytes = 0;
  for (const ExchangePhase& phase : phases)
    if (phase.payload) bytes += phase.wire.first;
  return bytes;
}

}  // namespace tern
