#include "tern/kernels/reference/update.h"

#include <cmath>

#include "tern/core/visit.h"

namespace tern::reference {

void sgd_update(std::span<const kernels::ParameterUpdate> updates, const kernels::SgdSettings& settings) {
  for (const auto& update : updates)
    visit_floating(update.w.dtype(), "sgd_update", [&]<class T>(T) {
      T* w = update.w.data<T>();
      const T* gradient = update.g.data<T>();
      T* velocity = settings.momentum != 0 ? update.first.data<T>() : nullptr;
      for (int64_t i = 0; i < update.w.numel(); ++i) {
        const double g = settings.gradient_scale * gradient[i] + settings.weight_decay * w[i];
        double step = g;
        if (velocity) {
          const double v = settings.momentum * velocity[i] + g;
          velocity[i] = static_cast<T>(v);
          step = settings.nesterov ? g + settings.momentum * v : v;
        }
        w[i] = static_cast<T>(w[i] - settings.lr * step);
      }
    });
}

void adam_update(std::span<const kernels::ParameterUpdate> updates, const kernels::AdamSettings& settings) {
  const auto& [lr, beta1, beta2, epsilon, weight_decay, decoupled, gradient_scale, step] = settings;
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(step));
  const double shrink = decoupled ? 1 - lr * weight_decay : 1;
  for (const auto& update : updates)
    visit_floating(update.w.dtype(), "adam_update", [&]<class T>(T) {
      T *w = update.w.data<T>(), *first = update.first.data<T>(), *second = update.second.data<T>();
      const T* gradient = update.g.data<T>();
      for (int64_t i = 0; i < update.w.numel(); ++i) {
        const double g = gradient_scale * gradient[i] + (decoupled ? 0 : weight_decay * w[i]);
        const double m = beta1 * first[i] + (1 - beta1) * g;
        const double v = beta2 * second[i] + (1 - beta2) * g * g;
        first[i] = static_cast<T>(m);
        second[i] = static_cast<T>(v);
        w[i] = static_cast<T>(shrink * w[i] - lr * (m / correction1) / (std::sqrt(v / correction2) + epsilon));
      }
    });
}

void average_update(std::span<const kernels::ParameterUpdate> updates, double decay) {
  for (const auto& update : updates)
    visit_floating(update.w.dtype(), "average_update", [&]<class T>(T) {
      const T* w = update.w.data<T>();
      T* average = update.first.data<T>();
      for (int64_t i = 0; i < update.w.numel(); ++i)
        average[i] = static_cast<T>(decay * average[i] + (1 - decay) * w[i]);
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

}  // namespace tern::reference
