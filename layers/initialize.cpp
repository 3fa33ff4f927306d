#include "tern/layers/initialize.h"

#include <cmath>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/core/visit.h"

namespace tern {
namespace {

constexpr int64_t kGrain = 1 << 13;

/// tensor[i] = draw(place of i in the whole tensor) for every element.
template <class Draw>
void fill_each(const TensorPart& tensor, const Draw& draw) {
  visit_floating(tensor.values.dtype(), "initialize", [&]<class T>(T) {
    T* out = tensor.values.data<T>();
    parallel_for(0, tensor.values.numel(), kGrain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) out[i] = static_cast<T>(draw(tensor.place(i)));
    });
  });
}

struct Fans {
  double in, out;
};
Fans fans(const Shape& shape) {
  check(shape.rank() >= 2, "initialize: shape ", shape, " has no fan, expected [out, in, ...]");
  const auto window = static_cast<double>(shape.numel_from(2));
  return {static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
}

double kaiming_variance(const Shape& shape, const KaimingOptions& options) {
  const auto [in, out] = fans(shape);
  return 2 / (1 + options.slope * options.slope) / (options.fan == Fan::in ? in : out);
}
double xavier_variance(const Shape& shape, double gain) {
  const auto [in, out] = fans(shape);
  return gain * gain * 2 / (in + out);
}

void fill_uniform(const TensorPart& tensor, const RandomStream& random, double low, double high) {
  const auto limit = static_cast<float>(high);
  fill_each(tensor, [&](uint64_t i) {
    const auto draw = static_cast<float>(low + (high - low) * random.uniform(i));
    const bool rounded_up = draw >= high && low < high;
    return rounded_up ? std::nextafter(limit, static_cast<float>(low)) : draw;
  });
}
void fill_uniform(const TensorPart& tensor, const RandomStream& random, double variance) {
  const double bound = std::sqrt(3 * variance);
  fill_uniform(tensor, random, -bound, bound);
}
void fill_normal(const TensorPart& tensor, const RandomStream& random, double deviation, double mean) {
  fill_each(tensor, [&](uint64_t i) { return static_cast<float>(mean + deviation * random.normal(i)); });
}

}  // namespace

Initializer constant(double value) {
  return [=](const TensorPart& tensor, const RandomStream&) { tensor.values.fill(value); };
}
Initializer normal(double deviation, double mean) {
  return [=](const TensorPart& tensor, const RandomStream& random) { fill_normal(tensor, random, deviation, mean); };
}
Initializer truncated_normal(double deviation, double mean) {
  return [=](const TensorPart& tensor, const RandomStream& random) {
    const auto count = static_cast<uint64_t>(tensor.whole.numel());
    fill_each(tensor, [&](uint64_t i) {
      float draw = random.normal(i);
      for (uint64_t again = i + count; std::abs(draw) > 2; again += count) draw = random.normal(again);
      return static_cast<float>(mean + deviation * draw);
    });
  };
}
Initializer uniform(double low, double high) {
  return [=](const TensorPart& tensor, const RandomStream& random) { fill_uniform(tensor, random, low, high); };
}
Initializer xavier_uniform(double gain) {
  return [=](const TensorPart& tensor, const RandomStream& random) {
    fill_uniform(tensor, random, xavier_variance(tensor.whole, gain));
  };
}
Initializer xavier_normal(double gain) {
  return [=](const TensorPart& tensor, const RandomStream& random) {
    fill_normal(tensor, random, std::sqrt(xavier_variance(tensor.whole, gain)), 0);
  };
}
Initializer kaiming_uniform(const KaimingOptions& options) {
  return [=](const TensorPart& tensor, const RandomStream& random) {
    fill_uniform(tensor, random, kaiming_variance(tensor.whole, options));
  };
}
Initializer kaiming_normal(const KaimingOptions& options) {
  return [=](const TensorPart& tensor, const RandomStream& random) {
    fill_normal(tensor, random, std::sqrt(kaiming_variance(tensor.whole, options)), 0);
  };
}

Initializer dirac(int64_t groups) {
  return [=](const TensorPart& tensor, const RandomStream&) {
    const Shape& shape = tensor.whole;
    check(shape.rank() == 4 && groups >= 1 && shape[0] % groups == 0, "dirac: shape ", shape, " in ", groups,
          " groups, expected [out, in, kh, kw] with `out` divided by the groups");
    const int64_t outputs = shape[0] / groups, window = shape[2] * shape[3];
    const int64_t middle = shape[2] / 2 * shape[3] + shape[3] / 2;
    fill_each(tensor, [&](uint64_t i) {
      const auto place = static_cast<int64_t>(i) % window, filter = static_cast<int64_t>(i) / window;
      return place == middle && filter % shape[1] == filter / shape[1] % outputs ? 1.0f : 0.0f;
    });
  };
}

Initializer default_weight() { return kaiming_uniform({.slope = std::sqrt(5.0)}); }
Initializer default_bias(const Shape& weight_shape) {
  const double in = fans(weight_shape).in, bound = in > 0 ? 1 / std::sqrt(in) : 0;
  return uniform(-bound, bound);
}

}  // namespace tern
