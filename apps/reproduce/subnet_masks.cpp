#include "tern/apps/reproduce/subnet_masks.h"

#include <algorithm>

#include "tern/core/state_dict.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/networks/mlp.h"

namespace tern::reproduce {
namespace {

/// The place of a worker's subnet in a tensor.
TensorSlice slice_of(const TensorCut& cut, const SubnetParts& parts, size_t worker) {
  const auto neurons = [&](const TensorCut::Axis& axis) -> std::optional<std::vector<int64_t>> {
    if (axis.layer < 0) return {};
    return parts[static_cast<size_t>(axis.layer)][worker];
  };
  return {.rows = neurons(cut.axes[0]), .columns = neurons(cut.axes[1]), .block = cut.axes[1].block};
}

/// Ones in the subnet's place, zeros elsewhere.
Tensor mask_of(const TensorSlice& slice, const Shape& whole) {
  Tensor mask = Tensor::zeros(whole);
  put(Tensor::full(slice.shape_in(whole), 1), slice, mask);
  return mask;
}

/// The sums over the rounds of one tensor.
struct Rounds {
  std::vector<double> along, variance, mean;
};

void add_round(const Tensor& mask, const Tensor& x, double share, Rounds& rounds) {
  double along = 0, error = 0, squares = 0;
  rounds.mean.resize(static_cast<size_t>(x.numel()));
  for (size_t i = 0; i < rounds.mean.size(); ++i) {
    const double value = x.span<float>()[i], kept = mask.span<float>()[i] * value / share;
    along += kept * value;
    error += (kept - value) * (kept - value);
    squares += value * value;
    rounds.mean[i] += kept;
  }
  rounds.along.push_back(along / squares);
  rounds.variance.push_back(error / squares);
}

void finish(const Rounds& rounds, const Tensor& x, MaskSample& sample) {
  sample.along = summarize(rounds.along);
  sample.variance = summarize(rounds.variance);
  const auto count = static_cast<double>(rounds.along.size());
  double error = 0, squares = 0;
  for (size_t i = 0; i < rounds.mean.size(); ++i) {
    const double value = x.span<float>()[i], off = rounds.mean[i] / count - value;
    error += off * off;
    squares += value * value;
  }
  sample.mean_error = error / squares * count * sample.share / (1 - sample.share);
}

}  // namespace

std::vector<MaskSample> sample_masks(int workers, int64_t rounds, uint64_t seed,
                                     const std::function<void(int64_t tensors)>& progress) {
  networks::Mlp model({.widths = {32, 64, 64, 8}, .norm = networks::MlpNorm::none});
  model.initialize(seed);
  const SubnetCuts cuts(model.subnet_plan(SubnetScope::fc), model);
  std::vector<MaskSample> samples;
  for (const auto& [name, parameter] : model.parameters()) {
    const TensorCut* const cut = cuts.find(name);
    if (cut == nullptr || parameter->value().shape().rank() < 2) continue;
    const Tensor& x = parameter->value();
    MaskSample sample = {.tensor = name, .least = workers};
    Rounds sums;
    for (int64_t round = 0; round < rounds; ++round) {
      const SubnetParts parts = draw_subnets(cuts, workers, seed, static_cast<uint32_t>(round));
      Tensor covered = Tensor::zeros(x.shape());
      for (size_t worker = 0; worker < static_cast<size_t>(workers); ++worker) {
        const Tensor mask = mask_of(slice_of(*cut, parts, worker), x.shape());
        for (size_t i = 0; i < mask.span<float>().size(); ++i) covered.span<float>()[i] += mask.span<float>()[i];
        if (worker != 0) continue;
        sample.share =
            static_cast<double>(std::ranges::count(mask.span<float>(), 1.0f)) / static_cast<double>(x.numel());
        add_round(mask, x, sample.share, sums);
      }
      const auto [least, most] = std::ranges::minmax(covered.span<float>());
      sample.least = std::min(sample.least, static_cast<int64_t>(least));
      sample.most = std::max(sample.most, static_cast<int64_t>(most));
    }
    finish(sums, x, sample);
    samples.push_back(sample);
    progress(std::ssize(samples));
  }
  return samples;
}

}  // namespace tern::reproduce
