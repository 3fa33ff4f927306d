#include "tern/dist/exchange/hop_ring.h"

#include <algorithm>

#include "tern/kernels/codec.h"
#include "tern/kernels/layout.h"

namespace tern {
namespace {

/// Parts begin at multiples of this many elements, which take whole bytes in every code.
constexpr int64_t kGroup = kernels::kCodesPerWord;

detail::Cuts group_cuts(int64_t count, int ranks) {
  detail::Cuts cuts = detail::even_cuts((count + kGroup - 1) / kGroup, ranks);
  for (int64_t& cut : cuts) cut = std::min(count, cut * kGroup);
  return cuts;
}

}  // namespace

struct HopRing::Run {
  GradientTag tag;
  Summands sums;
  detail::Cuts cuts;

  Tensor part(int rank) const {
    const auto r = static_cast<size_t>(rank);
    return sums.own.whole.slice(cuts[r], cuts[r + 1]);
  }
};

MeansToCome HopRing::begin(FusedGradients message) {
  Run run = {tag_of(message), summands(message), {}};
  run.cuts = group_cuts(run.sums.own.whole.numel(), communicator_.size());
  const std::optional<Hop> first = send(run, 0);
  return [this, run = std::move(run), first] { return finish(run, first); };
}

std::optional<HopRing::Hop> HopRing::send(const Run& run, int step) {
  const int n = communicator_.size(), me = communicator_.rank(), ranks = step + 1;
  if (step >= n - 1) return {};
  const Stopwatch encoding(times_.encode);
  const Tensor codes = encode(run.tag, run.part((me + 2 * n - step - 1) % n), ranks);
  const int64_t coming = bytes(run.part((me + 2 * n - step - 2) % n).numel(), ranks);
  Tensor received = Tensor::empty({coming}, codes.options());
  return Hop{received, communicator_.shift(codes, received)};
}

std::vector<Tensor> HopRing::finish(Run run, std::optional<Hop> hop) {
  const int n = communicator_.size(), me = communicator_.rank();
  for (int step = 0; hop; ++step) {
    wait(hop->work);
    {
      const Stopwatch decoding(times_.decode);
      Tensor sum = run.part((me + 2 * n - step - 2) % n);
      decode_add(run.tag, hop->received, step + 1, sum);
    }
    hop = send(run, step + 1);
  }
  gather(run);
  const Stopwatch decoding(times_.decode);
  return means_of(std::move(run.sums));
}

void HopRing::gather(const Run& run) {
  const int n = communicator_.size();
  std::vector<int64_t> counts;
  for (int r = 0; r < n; ++r) counts.push_back(bytes(run.part(r).numel(), n));
  const detail::Cuts cuts = detail::cuts_of(counts);
  Tensor all = Tensor::empty({cuts.back()}, {.dtype = DType::u8, .device = run.sums.own.whole.device()});
  wait([&] {
    const Stopwatch encoding(times_.encode);
    return communicator_.all_gather(encode(run.tag, run.part(communicator_.rank()), n), all, counts);
  }());
  const Stopwatch decoding(times_.decode);
  Tensor whole = run.sums.own.whole;
  kernels::fill(whole, 0);
  for (int r = 0; r < n; ++r) {
    Tensor sum = run.part(r);
    decode_add(run.tag, all.slice(cuts[static_cast<size_t>(r)], cuts[static_cast<size_t>(r) + 1]), n, sum);
  }
}

ExchangePlan plan_hop_ring(int64_t n, int ranks, const std::function<int64_t(int64_t count, int ranks)>& bytes) {
  const detail::Cuts cuts = group_cuts(n, ranks);
  const auto parts = [&](int summed) {
    std::vector<int64_t> sizes;
    for (size_t r = 0; r + 1 < cuts.size(); ++r) sizes.push_back(bytes(cuts[r + 1] - cuts[r], summed));
    return sizes;
  };
  const auto all = static_cast<double>(n), share = all / ranks;
  ExchangePlan plan;
  for (int k = 1; k < ranks; ++k)
    plan.phases.push_back({.encoded = share, .wire = shift_load(parts(k)), .decoded = share});
  plan.phases.push_back({.encoded = share, .wire = all_gather_load(parts(ranks)), .decoded = all});
  return plan;
}

}  // namespace tern
