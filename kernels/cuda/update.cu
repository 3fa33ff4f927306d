#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/cuda/reduction.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/update.h"

namespace tern::cuda {
namespace {

/// Parameters as the argument of a kernel. One launch updates up to `kMost` parameters, cut into chunks of `kChunk`
/// elements with one block each. Small parameters then need no launch of their own.
struct ParameterTable {
  static constexpr int kMost = 128, kChunk = 4096;

  struct Entry {
    float* w;
    const void* g;
    float *first, *second;
    void* copy;
    int64_t* steps;
    int64_t numel;
    bool narrow;  ///< g is bf16, else f32
    bool rounds;  ///< `copy` is bf16, else f32
  };
  /// The part of a parameter that one block updates.
  struct Chunk {
    const Entry* entry;
    int64_t begin, end;
  };

  explicit ParameterTable(std::span<const kernels::ParameterUpdate> updates) {
    const auto elements = [](const Tensor& tensor) { return tensor.defined() ? tensor.data<float>() : nullptr; };
    for (const auto& update : updates) {
      const bool narrow = update.g.defined() && update.g.dtype() == DType::bf16;
      entries[count] = {elements(update.w),
                        narrow ? update.g.raw_data() : elements(update.g),
                        elements(update.first),
                        elements(update.second),
                        update.copy.defined() ? update.copy.raw_data() : nullptr,
                        update.steps.defined() ? update.steps.data<int64_t>() : nullptr,
                        update.w.numel(),
                        narrow,
                        update.copy.defined() && update.copy.dtype() == DType::bf16};
      first_chunk[count + 1] = first_chunk[count] + static_cast<int32_t>((update.w.numel() + kChunk - 1) / kChunk);
      ++count;
    }
  }
  int32_t chunks() const { return first_chunk[count]; }

  __device__ Chunk chunk(int32_t number) const {
    int low = 0, high = count;  // first_chunk[low] <= number < first_chunk[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_chunk[middle] <= number ? low : high) = middle;
    }
    const int64_t begin = int64_t{number - first_chunk[low]} * kChunk;
    return {&entries[low], begin, std::min(begin + kChunk, entries[low].numel)};
  }

  int count = 0;
  int32_t first_chunk[kMost + 1] = {};
  Entry entries[kMost];
};

/// Four elements of an array. They are moved as one pack if the address is aligned. A null array reads as zeros and is
/// not written.
struct Four {
  float values[4];
};
template <class T>
__device__ Four load_four(const T* x, int64_t at, int count) {
  Four four{};
  if (x == nullptr) return four;
  if (count == 4 && reinterpret_cast<uintptr_t>(x + at) % sizeof(Pack<T, 4>) == 0) {
    const auto pack = load_pack<T, 4>(x + at);
    for (int j = 0; j < 4; ++j) four.values[j] = static_cast<float>(pack.values[j]);
  } else {
    for (int j = 0; j < 4; ++j)  // a constant number of iterations, so that the values stay in registers
      if (j < count) four.values[j] = static_cast<float>(x[at + j]);
  }
  return four;
}
template <class T>
__device__ void store_four(T* x, int64_t at, int count, const Four& four) {
  if (x == nullptr) return;
  if (count == 4 && reinterpret_cast<uintptr_t>(x + at) % sizeof(Pack<T, 4>) == 0)
    store_pack(x + at, four.values);
  else
    for (int j = 0; j < 4; ++j)
      if (j < count) x[at + j] = static_cast<T>(four.values[j]);
}

/// Calls rule(w, g, first, second) for every element, by reference. rule = make(entry), made once per block.
template <class Make>
__global__ void update_kernel(Make make, const __grid_constant__ ParameterTable table) {
  __shared__ decltype(make(table.entries[0])) rule;
  const auto chunk = table.chunk(static_cast<int32_t>(blockIdx.x));
  if (threadIdx.x == 0) rule = make(*chunk.entry);
  __syncthreads();
  const auto [w, g, first, second, copy, steps, numel, narrow, rounds] = *chunk.entry;
  for (int64_t at = chunk.begin + 4 * threadIdx.x; at < chunk.end; at += 4 * kThreads) {
    const int count = static_cast<int>(std::min(chunk.end - at, int64_t{4}));
    Four weights = load_four(w, at, count), a = load_four(first, at, count), b = load_four(second, at, count);
    const Four gradients = narrow ? load_four(static_cast<const BFloat16*>(g), at, count)
                                  : load_four(static_cast<const float*>(g), at, count);
    for (int j = 0; j < 4; ++j) rule(weights.values[j], gradients.values[j], a.values[j], b.values[j]);
    store_four(w, at, count, weights);
    store_four(first, at, count, a);
    store_four(second, at, count, b);
    if (rounds)
      store_four(static_cast<BFloat16*>(copy), at, count, weights);
    else
      store_four(static_cast<float*>(copy), at, count, weights);
  }
}

/// Calls body(table) for tables that together hold all `updates`.
template <class Body>
void for_each_table(std::span<const kernels::ParameterUpdate> updates, Body body) {
  while (!updates.empty()) {
    const auto some = updates.first(std::min<size_t>(updates.size(), ParameterTable::kMost));
    body(ParameterTable(some));
    updates = updates.subspan(some.size());
  }
}

template <class Make>
void update_all(const char* operation, std::span<const kernels::ParameterUpdate> updates, Make make) {
  for_each_table(updates, [&](const ParameterTable& table) {
    launch(operation, updates.front().w.device(), {.blocks = dim3(static_cast<unsigned>(table.chunks()))},
           update_kernel<Make>, make, table);
  });
}

using kernels::ParameterUpdate;

/// A number in device memory, or 1.
struct Factor {
  const double* number;

  explicit Factor(const Tensor& tensor) : number(tensor.defined() ? tensor.data<double>() : nullptr) {}
  __device__ float value() const { return number ? static_cast<float>(*number) : 1; }
};

/// The learning rate and the gradient scale of the step, in device memory.
struct Pace {
  const double* lr;
  Factor gradient_scale;

  template <class Settings>
  explicit Pace(const Settings& settings)
      : lr(settings.lr.template data<double>()), gradient_scale(settings.gradient_scale) {}
  __device__ double rate() const { return *lr; }
  __device__ float scale() const { return gradient_scale.value(); }
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

/// The direction takes the place of w.
struct MomentumRule {
  float momentum, scale;
  bool nesterov;
  __device__ void operator()(float& direction, float g, float& velocity, float&) const {
    velocity = momentum * velocity + scale * g;
    direction = nesterov ? scale * g + momentum * velocity : velocity;
  }
};
struct MakeMomentum {
  float momentum;
  Factor gradient_scale;
  bool nesterov;
  __device__ MomentumRule operator()(const ParameterTable::Entry&) const {
    return {momentum, gradient_scale.value(), nesterov};
  }
};

__global__ void set_norm_kernel(const double* squared_norm, double norm, float* x, int64_t count) {
  const auto factor = static_cast<float>(norm / (sqrt(*squared_norm) + kernels::kLeastNorm));
  for (int64_t i = global_thread(); i < count; i += global_threads()) x[i] *= factor;
}

/// The average takes the place of w, and w takes the place of g.
struct AverageRule {
  float rest;
  __device__ void operator()(float& average, float w, float&, float&) const { average += rest * (w - average); }
};
struct MakeAverage {
  const double* decay;
  __device__ AverageRule operator()(const ParameterTable::Entry&) const { return {static_cast<float>(1 - *decay)}; }
};

__global__ void clip_scale_kernel(const double* squared_norm, double max_norm, double* scale) {
  *scale = kernels::clip_factor(sqrt(*squared_norm), max_norm);
}

/// Runs before the update that reads the counts, because many blocks of the update may share one count.
__global__ void count_steps_kernel(const __grid_constant__ ParameterTable table) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i < table.count) ++*table.entries[i].steps;
}

/// Adds the squares of each chunk to `partials`, from number `first` on. The launch that stores the last of `count`
/// partials also adds them up.
__global__ void squares_kernel(const __grid_constant__ ParameterTable table, double* partials, int64_t first,
                               int64_t count, double* result) {
  const auto chunk = table.chunk(static_cast<int32_t>(blockIdx.x));
  const ParameterTable::Entry& entry = *chunk.entry;
  double sum = 0;
  for (int64_t at = chunk.begin + threadIdx.x; at < chunk.end; at += kThreads) {
    const double g = entry.narrow ? static_cast<float>(static_cast<const BFloat16*>(entry.g)[at])
                                  : static_cast<const float*>(entry.g)[at];
    sum += g * g;
  }
  sum = fold_group<kThreads>(sum, Sum{});
  if (threadIdx.x == 0) partials[first + blockIdx.x] = sum;
  if (first + gridDim.x == count && is_last_block(gridDim.x, 0)) total(partials, count, 1, result);
}

void sgd_update(std::span<const ParameterUpdate> updates, const kernels::SgdSettings& settings) {
  // Leaves arrays that the rule does not use out of the table. Without momentum, the velocity is 0 · 0 + gradient.
  std::vector<ParameterUpdate> used;
  for (const auto& update : updates)
    used.push_back({update.w, update.g, settings.momentum != 0 ? update.first : Tensor(), {}, {}, update.copy});
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

void momentum_direction(std::span<const ParameterUpdate> updates, const kernels::MomentumSettings& settings) {
  update_all("momentum_direction", updates,
             MakeMomentum{static_cast<float>(settings.momentum), Factor(settings.gradient_scale), settings.nesterov});
}

void set_norm(Tensor& x, const Tensor& squared_norm, double norm) {
  launch("set_norm", x.device(), grid_over(x.numel()), set_norm_kernel,
         static_cast<const double*>(squared_norm.data<double>()), norm, x.data<float>(), x.numel());
}

void average_update(std::span<const ParameterUpdate> updates, const Tensor& decay) {
  std::vector<ParameterUpdate> used;
  for (const auto& update : updates) used.push_back({update.first, update.w, {}, {}});
  update_all("average_update", used, MakeAverage{decay.data<double>()});
}

void squared_norm(std::span<const ParameterUpdate> updates, Tensor& sum) {
  int64_t chunks = 0;
  for (const auto& update : updates) chunks += (update.w.numel() + ParameterTable::kChunk - 1) / ParameterTable::kChunk;
  if (chunks == 0) return device_backend(sum.device()).fill_zero(sum.raw_data(), sum.bytes());
  const Tensor partials = Tensor::empty({chunks}, {.dtype = DType::f64, .device = sum.device()});
  int64_t done = 0;
  for_each_table(updates, [&](const ParameterTable& table) {
    launch("squared_norm", sum.device(), {.blocks = dim3(static_cast<unsigned>(table.chunks()))}, squares_kernel, table,
           partials.data<double>(), done, chunks, sum.data<double>());
    done += table.chunks();
  });
}

void clip_scale(const Tensor& squared_norm, double max_norm, Tensor& scale) {
  launch("clip_scale", scale.device(), {.blocks = 1, .threads = 1}, clip_scale_kernel,
         static_cast<const double*>(squared_norm.data<double>()), max_norm, scale.data<double>());
}

}  // namespace

void provide_update() {
  kernels::sgd_update.provide(Target::cuda, sgd_update);
  kernels::adam_update.provide(Target::cuda, adam_update);
  kernels::momentum_direction.provide(Target::cuda, momentum_direction);
  kernels::set_norm.provide(Target::cuda, set_norm);
  kernels::average_update.provide(Target::cuda, average_update);
  kernels::squared_norm.provide(Target::cuda, squared_norm);
  kernels::clip_scale.provide(Target::cuda, clip_scale);
}

}  // namespace tern::cuda
