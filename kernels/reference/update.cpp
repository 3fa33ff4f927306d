#include "tern/kernels/update.h"

#include <algorithm>
#include <cmath>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

double number(const Tensor& tensor) { return *tensor.data<double>(); }
double number_or_1(const Tensor& tensor) { return tensor.defined() ? number(tensor) : 1; }

void write_copy(const kernels::ParameterUpdate& update) {
  if (update.copy.defined()) update.copy.copy_from(update.w);
}

void sgd_update(std::span<const kernels::ParameterUpdate> updates, const kernels::SgdSettings& settings) {
  const double lr = number(settings.lr), scale = number_or_1(settings.gradient_scale);
  for (const auto& update : updates)
    visit_floating(update.w.dtype(), "sgd_update", [&]<class T>(T) {
      T* w = update.w.data<T>();
      const T* gradient = update.g.data<T>();
      T* velocity = settings.momentum != 0 ? update.first.data<T>() : nullptr;
      for (int64_t i = 0; i < update.w.numel(); ++i) {
        const double g = scale * gradient[i] + settings.weight_decay * w[i];
        double step = g;
        if (velocity) {
          const double v = settings.momentum * velocity[i] + g;
          velocity[i] = static_cast<T>(v);
          step = settings.nesterov ? g + settings.momentum * v : v;
        }
        w[i] = static_cast<T>(w[i] - lr * step);
      }
      write_copy(update);
    });
}

void adam_update(std::span<const kernels::ParameterUpdate> updates, const kernels::AdamSettings& s) {
  const double lr = number(s.lr), scale = number_or_1(s.gradient_scale);
  const double shrink = s.decoupled ? 1 - lr * s.weight_decay : 1;
  for (const auto& update : updates) {
    const auto steps = static_cast<double>(++*update.steps.data<int64_t>());
    const double correction1 = 1 - std::pow(s.beta1, steps), correction2 = 1 - std::pow(s.beta2, steps);
    visit_floating(update.w.dtype(), "adam_update", [&]<class T>(T) {
      T *w = update.w.data<T>(), *first = update.first.data<T>(), *second = update.second.data<T>();
      const T* gradient = update.g.data<T>();
      for (int64_t i = 0; i < update.w.numel(); ++i) {
        const double g = scale * gradient[i] + (s.decoupled ? 0 : s.weight_decay * w[i]);
        const double m = s.beta1 * first[i] + (1 - s.beta1) * g;
        const double v = s.beta2 * second[i] + (1 - s.beta2) * g * g;
        first[i] = static_cast<T>(m);
        second[i] = static_cast<T>(v);
        w[i] = static_cast<T>(shrink * w[i] - lr * (m / correction1) / (std::sqrt(v / correction2) + s.epsilon));
      }
      write_copy(update);
    });
  }
}

void momentum_direction(std::span<const kernels::ParameterUpdate> updates, const kernels::MomentumSettings& settings) {
  const double scale = number_or_1(settings.gradient_scale);
  for (const auto& update : updates)
    visit_floating(update.g.dtype(), "momentum_direction", [&]<class T>(T) {
      T *direction = update.w.data<T>(), *velocity = update.first.data<T>();
      const T* gradient = update.g.data<T>();
      for (int64_t i = 0; i < update.g.numel(); ++i) {
        const double g = scale * gradient[i], v = settings.momentum * velocity[i] + g;
        velocity[i] = static_cast<T>(v);
        direction[i] = static_cast<T>(settings.nesterov ? g + settings.momentum * v : v);
      }
    });
}

void set_norm(Tensor& x, const Tensor& squared_norm, double norm) {
  const double factor = norm / (std::sqrt(number(squared_norm)) + kernels::kLeastNorm);
  visit_floating(x.dtype(), "set_norm", [&]<class T>(T) {
    for (T& element : x.span<T>()) element = static_cast<T>(factor * element);
  });
}

void average_update(std::span<const kernels::ParameterUpdate> updates, const Tensor& decay) {
  const double rest = 1 - number(decay);
  for (const auto& update : updates)
    visit_floating(update.w.dtype(), "average_update", [&]<class T>(T) {
      const T* w = update.w.data<T>();
      T* average = update.first.data<T>();
      for (int64_t i = 0; i < update.w.numel(); ++i) {
        const double a = average[i];
        average[i] = static_cast<T>(a + rest * (w[i] - a));
      }
    });
}

void squared_norm(std::span<const kernels::ParameterUpdate> updates, Tensor& sum) {
  double total = 0;
  for (const auto& update : updates)
    visit_floating(update.g.dtype(), "squared_norm", [&]<class T>(T) {
      for (const T g : update.g.span<T>()) total += static_cast<double>(g) * static_cast<double>(g);
    });
  sum.fill(total);
}

void clip_scale(const Tensor& squared_norm, double max_norm, Tensor& scale) {
  scale.fill(kernels::clip_factor(std::sqrt(number(squared_norm)), max_norm));
}

}  // namespace

void provide_update() {
  kernels::sgd_update.provide(Target::reference, sgd_update);
  kernels::adam_update.provide(Target::reference, adam_update);
  kernels::momentum_direction.provide(Target::reference, momentum_direction);
  kernels::set_norm.provide(Target::reference, set_norm);
  kernels::average_update.provide(Target::reference, average_update);
  kernels::squared_norm.provide(Target::reference, squared_norm);
  kernels::clip_scale.provide(Target::reference, clip_scale);
}

}  // namespace tern::reference
