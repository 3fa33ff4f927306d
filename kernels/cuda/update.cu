#include "tern/kernels/cuda/update.h"

#include <cmath>
#include <vector>

#include "tern/kernels/cuda/group.h"
#include "tern/kernels/cuda/parameter_table.h"
#include "tern/kernels/cuda/total.h"

namespace tern::cuda {
namespace {

using kernels::ParameterUpdate;

struct SgdRule {
  float lr, momentum, decay, scale;
  bool nesterov;
  __device__ void operator()(float& w, float g, float& velocity, float&) const {
    const float gradient = scale * g + decay * w;
    velocity = momentum * velocity + gradient;
    w -= lr * (nesterov ? gradient + momentum * velocity : velocity);
  }
};

struct AdamRule {
  float beta1, beta2, rest1, rest2, rate, epsilon, root_scale, scale, decay, keep;
  __device__ void operator()(float& w, float g, float& m, float& v) const {
    const float gradient = scale * g + decay * w;
    m = beta1 * m + rest1 * gradient;
    v = beta2 * v + rest2 * gradient * gradient;
    w = keep * w - rate * m / (sqrtf(v) * root_scale + epsilon);
  }
};

/// The average stands in the place of w, and w in that of g.
struct AverageRule {
  float keep, rest;
  __device__ void operator()(float& average, float w, float&, float&) const { average = keep * average + rest * w; }
};

__global__ void squares_kernel(const __grid_constant__ ParameterTable table, double* partials) {
  const auto chunk = table.chunk(static_cast<int32_t>(blockIdx.x));
  double sum = 0;
  for (int64_t at = chunk.begin + threadIdx.x; at < chunk.end; at += kThreads) {
    const double g = chunk.entry->g[at];
    sum += g * g;
  }
  sum = fold_group<kThreads>(sum, Sum{});
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

}  // namespace

void sgd_update(std::span<const ParameterUpdate> updates, const kernels::SgdSettings& settings) {
  // Arrays that a rule has no use for stay out of the table. Without momentum the velocity is 0 · 0 + gradient.
  std::vector<ParameterUpdate> used;
  for (const auto& [w, g, first, second] : updates)
    used.push_back({w, g, settings.momentum != 0 ? first : Tensor(), {}});
  update_all("sgd_update", used,
             SgdRule{.lr = static_cast<float>(settings.lr),
                     .momentum = static_cast<float>(settings.momentum),
                     .decay = static_cast<float>(settings.weight_decay),
                     .scale = static_cast<float>(settings.gradient_scale),
                     .nesterov = settings.nesterov});
}

void adam_update(std::span<const ParameterUpdate> updates, const kernels::AdamSettings& settings) {
  const double correction1 = 1 - std::pow(settings.beta1, static_cast<double>(settings.step));
  const double correction2 = 1 - std::pow(settings.beta2, static_cast<double>(settings.step));
  update_all("adam_update", updates,
             AdamRule{.beta1 = static_cast<float>(settings.beta1),
                      .beta2 = static_cast<float>(settings.beta2),
                      .rest1 = static_cast<float>(1 - settings.beta1),
                      .rest2 = static_cast<float>(1 - settings.beta2),
                      .rate = static_cast<float>(settings.lr / correction1),
                      .epsilon = static_cast<float>(settings.epsilon),
                      .root_scale = static_cast<float>(1 / std::sqrt(correction2)),
                      .scale = static_cast<float>(settings.gradient_scale),
                      .decay = static_cast<float>(settings.decoupled ? 0 : settings.weight_decay),
                      .keep = static_cast<float>(settings.decoupled ? 1 - settings.lr * settings.weight_decay : 1)});
}

void average_update(std::span<const ParameterUpdate> updates, double decay) {
  std::vector<ParameterUpdate> used;
  for (const auto& [w, g, first, second] : updates) used.push_back({first, w, {}, {}});
  update_all("average_update", used, AverageRule{static_cast<float>(decay), static_cast<float>(1 - decay)});
}

void squared_norm(std::span<const ParameterUpdate> updates, Tensor& sum) {
  int64_t chunks = 0;
  for (const auto& update : updates) chunks += (update.w.numel() + ParameterTable::kChunk - 1) / ParameterTable::kChunk;
  const Tensor partials = Tensor::empty({chunks}, {.dtype = DType::f64, .device = sum.device()});
  for (int64_t done = 0; !updates.empty();) {
    const auto some = updates.first(std::min<size_t>(updates.size(), ParameterTable::kMost));
    const ParameterTable table(some);
    launch("squared_norm", sum.device(), {.blocks = dim3(static_cast<unsigned>(table.chunks()))}, squares_kernel, table,
           partials.data<double>() + done);
    done += table.chunks();
    updates = updates.subspan(some.size());
  }
  total("squared_norm", partials, 1, sum);
}

}  // namespace tern::cuda
