#include "tern/kernels/cuda/update.h"

#include <cmath>
#include <vector>

#include "tern/kernels/cuda/group.h"
#include "tern/kernels/cuda/parameter_table.h"
#include "tern/kernels/cuda/total.h"

namespace tern::cuda {
namespace {

using kernels::ParameterUpdate;

/// Of the step, on the device.
struct Pace {
  const double *lr, *gradient_scale;
  double lr_scale;

  template <class Settings>
  explicit Pace(const Settings& settings)
      : lr(settings.lr.template data<double>()),
        gradient_scale(settings.gradient_scale.defined() ? settings.gradient_scale.template data<double>() : nullptr),
        lr_scale(settings.lr_scale) {}
  __device__ double rate() const { return lr_scale * *lr; }
  __device__ float scale() const { return gradient_scale ? static_cast<float>(*gradient_scale) : 1; }
};

struct SgdRule {
  float lr, momentum, decay, scale;
  bool nesterov;
  __device__ void operator()(float& w, float g, float& velocity, float&) const {
    const float gradient = scale * g + decay * w;
    velocity = momentum * velocity + gradient;
    w -= lr * (nesterov ? gradient + momentum * velocity : velocity);
  }
};
struct MakeSgd {
  Pace pace;
  float momentum, decay;
  bool nesterov;
  __device__ SgdRule operator()(const ParameterTable::Entry&) const {
    return {static_cast<float>(pace.rate()), momentum, decay, pace.scale(), nesterov};
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
struct MakeAdam {
  Pace pace;
  double beta1, beta2, epsilon, decay;
  bool decoupled;
  __device__ AdamRule operator()(const ParameterTable::Entry& entry) const {
    const auto steps = static_cast<double>(*entry.steps);
    const double lr = pace.rate(), correction1 = 1 - pow(beta1, steps), correction2 = 1 - pow(beta2, steps);
    return {.beta1 = static_cast<float>(beta1),
            .beta2 = static_cast<float>(beta2),
            .rest1 = static_cast<float>(1 - beta1),
            .rest2 = static_cast<float>(1 - beta2),
            .rate = static_cast<float>(lr / correction1),
            .epsilon = static_cast<float>(epsilon),
            .root_scale = static_cast<float>(1 / sqrt(correction2)),
            .scale = pace.scale(),
            .decay = static_cast<float>(decoupled ? 0 : decay),
            .keep = static_cast<float>(decoupled ? 1 - lr * decay : 1)};
  }
};

/// The average stands in the place of w, and w in that of g.
struct AverageRule {
  float keep, rest;
  __device__ void operator()(float& average, float w, float&, float&) const { average = keep * average + rest * w; }
};
struct MakeAverage {
  const double* decay;
  __device__ AverageRule operator()(const ParameterTable::Entry&) const {
    return {static_cast<float>(*decay), static_cast<float>(1 - *decay)};
  }
};

__global__ void clip_scale_kernel(const double* squared_norm, double max_norm, double* scale) {
  *scale = std::min(1.0, max_norm / (sqrt(*squared_norm) + 1e-6));
}

/// Before the update that reads them, as many of its blocks may share a count.
__global__ void count_steps_kernel(const __grid_constant__ ParameterTable table) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i < table.count) ++*table.entries[i].steps;
}

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
  for (const auto& update : updates)
    used.push_back({update.w, update.g, settings.momentum != 0 ? update.first : Tensor(), {}});
  update_all("sgd_update", used,
             MakeSgd{.pace = Pace(settings),
                     .momentum = static_cast<float>(settings.momentum),
                     .decay = static_cast<float>(settings.weight_decay),
                     .nesterov = settings.nesterov});
}

void adam_update(std::span<const ParameterUpdate> updates, const kernels::AdamSettings& settings) {
  for_each_table(updates, [&](const ParameterTable& table) {
    launch("adam_update", updates.front().w.device(), {.blocks = 1, .threads = ParameterTable::kMost},
           count_steps_kernel, table);
  });
  update_all("adam_update", updates,
             MakeAdam{.pace = Pace(settings),
                      .beta1 = settings.beta1,
                      .beta2 = settings.beta2,
                      .epsilon = settings.epsilon,
                      .decay = settings.weight_decay,
                      .decoupled = settings.decoupled});
}

void average_update(std::span<const ParameterUpdate> updates, const Tensor& decay) {
  std::vector<ParameterUpdate> used;
  for (const auto& update : updates) used.push_back({update.first, update.w, {}, {}});
  update_all("average_update", used, MakeAverage{decay.data<double>()});
}

void squared_norm(std::span<const ParameterUpdate> updates, Tensor& sum) {
  int64_t chunks = 0;
  for (const auto& update : updates) chunks += (update.w.numel() + ParameterTable::kChunk - 1) / ParameterTable::kChunk;
  const Tensor partials = Tensor::empty({chunks}, {.dtype = DType::f64, .device = sum.device()});
  int64_t done = 0;
  for_each_table(updates, [&](const ParameterTable& table) {
    launch("squared_norm", sum.device(), {.blocks = dim3(static_cast<unsigned>(table.chunks()))}, squares_kernel, table,
           partials.data<double>() + done);
    done += table.chunks();
  });
  total("squared_norm", partials, 1, sum);
}

void clip_scale(const Tensor& squared_norm, double max_norm, Tensor& scale) {
  launch("clip_scale", scale.device(), {.blocks = 1, .threads = 1}, clip_scale_kernel,
         static_cast<const double*>(squared_norm.data<double>()), max_norm, scale.data<double>());
}

}  // namespace tern::cuda
