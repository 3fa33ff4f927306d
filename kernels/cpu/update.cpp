#include "tern/kernels/update.h"

#include <cmath>

#include "tern/kernels/cpu/map.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using kernels::ParameterUpdate;

int64_t total_numel(std::span<const ParameterUpdate> updates) {
  int64_t total = 0;
  for (const auto& update : updates) total += update.w.numel();
  return total;
}

double number(const Tensor& tensor) { return *tensor.data<double>(); }
float number_or_1(const Tensor& tensor) { return tensor.defined() ? static_cast<float>(number(tensor)) : 1; }

/// Calls body(update, first, last) on ranges that cover every parameter. The ranges are split evenly over the threads
/// as if the parameters were one array.
template <class Body>
void for_each_range(std::span<const ParameterUpdate> updates, Body body) {
  parallel_for(0, total_numel(updates), kGrain, [&](int64_t first, int64_t last) {
    for (const auto& update : updates) {
      const int64_t numel = update.w.numel();
      if (first < numel && last > 0) body(update, std::max<int64_t>(first, 0), std::min(last, numel));
      first -= numel;
      last -= numel;
    }
  });
}

/// w[i] = next(i), and the same in the copy if there is one.
template <class Next>
void set_elements(const ParameterUpdate& update, int64_t first, int64_t last, Next next) {
  float* const w = update.w.data<float>();
  const auto set_both = [=]<class T>(T* copy) {
    vectorized([=] {
#pragma omp simd
      for (int64_t i = first; i < last; ++i) {
        w[i] = next(i);
        copy[i] = static_cast<T>(w[i]);
      }
    });
  };
  if (!update.copy.defined())
    vectorized([=] {
#pragma omp simd
      for (int64_t i = first; i < last; ++i) w[i] = next(i);
    });
  else if (update.copy.dtype() == DType::bf16)
    set_both(update.copy.data<BFloat16>());
  else
    set_both(update.copy.data<float>());
}

void sgd_update(std::span<const ParameterUpdate> updates, const kernels::SgdSettings& settings) {
  const auto lr = static_cast<float>(number(settings.lr)), momentum = static_cast<float>(settings.momentum),
             decay = static_cast<float>(settings.weight_decay), scale = number_or_1(settings.gradient_scale);
  const bool nesterov = settings.nesterov;
  for_each_range(updates, [=](const ParameterUpdate& update, int64_t first, int64_t last) {
    const float *const w = update.w.data<float>(), *const g = update.g.data<float>();
    if (momentum == 0)
      return set_elements(update, first, last, [=](int64_t i) { return w[i] - lr * (scale * g[i] + decay * w[i]); });
    float* const v = update.first.data<float>();
    set_elements(update, first, last, [=](int64_t i) {
      const float gradient = scale * g[i] + decay * w[i];
      const float velocity = momentum * v[i] + gradient;
      v[i] = velocity;
      return w[i] - lr * (nesterov ? gradient + momentum * velocity : velocity);
    });
  });
}

void adam_update(std::span<const ParameterUpdate> updates, const kernels::AdamSettings& settings) {
  for (const auto& update : updates) ++*update.steps.data<int64_t>();
  const double lr = number(settings.lr);
  const auto beta1 = static_cast<float>(settings.beta1), beta2 = static_cast<float>(settings.beta2),
             rest1 = static_cast<float>(1 - settings.beta1), rest2 = static_cast<float>(1 - settings.beta2),
             epsilon = static_cast<float>(settings.epsilon), scale = number_or_1(settings.gradient_scale),
             decay = static_cast<float>(settings.decoupled ? 0 : settings.weight_decay),
             keep = static_cast<float>(settings.decoupled ? 1 - lr * settings.weight_decay : 1);
  for_each_range(updates, [=, &settings](const ParameterUpdate& update, int64_t first, int64_t last) {
    const auto steps = static_cast<double>(*update.steps.data<int64_t>());
    const double correction1 = 1 - std::pow(settings.beta1, steps), correction2 = 1 - std::pow(settings.beta2, steps);
    const auto rate = static_cast<float>(lr / correction1), root_scale = static_cast<float>(1 / std::sqrt(correction2));
    const float *const w = update.w.data<float>(), *const g = update.g.data<float>();
    float *const m = update.first.data<float>(), *const s = update.second.data<float>();
    set_elements(update, first, last, [=](int64_t i) {
      const float gradient = scale * g[i] + decay * w[i];
      m[i] = beta1 * m[i] + rest1 * gradient;
      s[i] = beta2 * s[i] + rest2 * gradient * gradient;
      return keep * w[i] - rate * m[i] / (std::sqrt(s[i]) * root_scale + epsilon);
    });
  });
}

void momentum_direction(std::span<const ParameterUpdate> updates, const kernels::MomentumSettings& settings) {
  const auto momentum = static_cast<float>(settings.momentum), scale = number_or_1(settings.gradient_scale);
  const bool nesterov = settings.nesterov;
  for_each_range(updates, [=](const ParameterUpdate& update, int64_t first, int64_t last) {
    float *direction = update.w.data<float>(), *v = update.first.data<float>();
    const float* g = update.g.data<float>();
    vectorized([=] {
#pragma omp simd
      for (int64_t i = first; i < last; ++i) {
        const float velocity = momentum * v[i] + scale * g[i];
        v[i] = velocity;
        direction[i] = nesterov ? scale * g[i] + momentum * velocity : velocity;
      }
    });
  });
}

void set_norm(Tensor& x, const Tensor& squared_norm, double norm) {
  kernels::scale(x, norm / (std::sqrt(number(squared_norm)) + kernels::kLeastNorm), x);
}

void average_update(std::span<const ParameterUpdate> updates, const Tensor& decay) {
  const auto rest = static_cast<float>(1 - number(decay));
  for_each_range(updates, [=](const ParameterUpdate& update, int64_t first, int64_t last) {
    const float* w = update.w.data<float>();
    float* average = update.first.data<float>();
    vectorized([=] {
#pragma omp simd
      for (int64_t i = first; i < last; ++i) average[i] += rest * (w[i] - average[i]);
    });
  });
}

void squared_norm(std::span<const ParameterUpdate> updates, Tensor& sum) {
  constexpr int64_t kBlock = 4096, kLanes = 16;
  double total = 0;
  for (const auto& update : updates) {
    const int64_t numel = update.g.numel(), blocks = (numel + kBlock - 1) / kBlock;
    const Tensor partials = Tensor::empty({blocks}, {.dtype = DType::f64});
    double* out = partials.data<double>();
    const float* g = update.g.data<float>();
    parallel_vectorized(blocks, kGrain / kBlock, [=](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        double lanes[kLanes] = {};
        const int64_t end = std::min(numel, (block + 1) * kBlock);
        int64_t i = block * kBlock;
        for (; i + kLanes <= end; i += kLanes) {
#pragma omp simd
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            const double value = g[i + lane];
            lanes[lane] += value * value;
          }
        }
        for (int64_t lane = 0; i < end; ++i, ++lane) lanes[lane] += double{g[i]} * g[i];
        for (int64_t half = kLanes / 2; half > 0; half /= 2)
          for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
        out[block] = lanes[0];
      }
    });
    for (int64_t block = 0; block < blocks; ++block) total += out[block];
  }
  *sum.data<double>() = total;
}

void clip_scale(const Tensor& squared_norm, double max_norm, Tensor& scale) {
  *scale.data<double>() = kernels::clip_factor(std::sqrt(number(squared_norm)), max_norm);
}

}  // namespace

void provide_update() {
  kernels::sgd_update.provide(Target::cpu, sgd_update);
  kernels::adam_update.provide(Target::cpu, adam_update);
  kernels::momentum_direction.provide(Target::cpu, momentum_direction);
  kernels::set_norm.provide(Target::cpu, set_norm);
  kernels::average_update.provide(Target::cpu, average_update);
  kernels::squared_norm.provide(Target::cpu, squared_norm);
  kernels::clip_scale.provide(Target::cpu, clip_scale);
}

}  // namespace tern::cpu
