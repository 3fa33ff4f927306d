#include "tern/kernels/hadamard.h"

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/cuda/recorded_step.h"
#include "tern/kernels/hadamard_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

using Levels = std::array<float, 8>;

// A block codes one bucket, which it holds in shared memory.

constexpr int kPerThread = static_cast<int>(kHadamardBucket) / kThreads;
constexpr int kSignWords = static_cast<int>(kHadamardBucket) / kWarp;

/// The signs of a bucket: bit i % 32 of word i / 32 is that of element i. All threads of the block must call it
/// together.
__device__ void draw_signs(uint64_t seed, int64_t bucket, uint32_t (&signs)[kSignWords]) {
  const auto block = static_cast<int>(threadIdx.x);
  if (block < kSignWords / 4) {
    const auto words = hadamard_stream(seed).block(hadamard_block(bucket, block * kSignsPerBlock));
    for (int word = 0; word < 4; ++word) signs[4 * block + word] = words[static_cast<size_t>(word)];
  }
  __syncthreads();
}
__device__ uint32_t sign_of(const uint32_t (&signs)[kSignWords], int64_t i) { return signs[i / 32] >> (i % 32) << 31; }

/// The sum of value(i) in the order of `hadamard_sum`. All threads of the block get it, and must call it together.
template <class Value>
__device__ double ordered_sum(int64_t count, Value value) {
  __shared__ double total;
  double sum = 0;
  if (threadIdx.x < kStatisticsLanes)
    for (int64_t i = threadIdx.x; i < count; i += kStatisticsLanes) sum += value(i);
  if (threadIdx.x < kWarp)
    for (int half = kStatisticsLanes / 2; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  __syncthreads();
  if (threadIdx.x == 0) total = sum;
  __syncthreads();
  return total;
}

/// x ← Hx. All threads of the block must call it together.
__device__ void transform(float* x, int64_t count) {
  for (int64_t half = 1; half < count; half *= 2) {
    __syncthreads();
    for (int64_t pair = threadIdx.x; pair < count / 2; pair += kThreads) {
      const int64_t low = pair & (half - 1), i = (pair - low) * 2 + low;
      const float a = x[i], b = x[i + half];
      x[i] = a + b;
      x[i + half] = a - b;
    }
  }
  __syncthreads();
}

__global__ void encode_kernel(const float* g, int64_t n, RandomKey key, const int64_t* recorded_step, int bits,
                              const __grid_constant__ Levels levels, uint8_t* codes) {
  __shared__ float x[kHadamardBucket];
  __shared__ uint32_t signs[kSignWords];
  key.step = step_now(recorded_step, key.step);
  const uint64_t seed = drawn_seed(key);
  const int64_t b = blockIdx.x;
  const HadamardBucket place(n, bits, b);
  for (int64_t i = threadIdx.x; i < place.padded; i += kThreads) x[i] = i < place.count ? g[place.first + i] : 0.0f;
  draw_signs(seed, b, signs);
  const double norm = sqrt(ordered_sum(place.count, [&](int64_t i) { return double{x[i]} * x[i]; }));
  const float factor = hadamard_factor(norm);
  for (int64_t i = threadIdx.x; i < place.padded; i += kThreads) x[i] = with_sign(x[i] * factor, sign_of(signs, i));
  transform(x, place.padded);
  const auto code = [&](int64_t i) { return hadamard_code(x[i], levels, bits); };
  const double product =
      ordered_sum(place.padded, [&](int64_t i) { return double{x[i]} * hadamard_level(code(i), levels, bits); });
  if (threadIdx.x == 0) {
    store_bytes(codes + place.scale_at, 4, std::bit_cast<uint32_t>(hadamard_scale(norm, product)));
    if (b == 0)
      for (int half = 0; half < 2; ++half) store_bytes(codes + 4 * half, 4, static_cast<uint32_t>(seed >> (32 * half)));
  }
  const int lane = lane_id();
  for (int64_t first = threadIdx.x - lane; first < place.padded; first += kThreads) {
    const bool exists = first + lane < place.padded;
    const uint32_t own = exists ? code(first + lane) : 0;
    const int64_t byte = first / 8;
    for (int plane = 0; plane < bits; ++plane) {
      const uint32_t word = __ballot_sync(~0u, (own >> (bits - 1 - plane) & 1u) != 0);
      if (lane == 0)
        store_bytes(codes + place.planes_at + plane * place.plane_bytes + byte,
                    static_cast<int>(std::min<int64_t>(4, place.plane_bytes - byte)), word);
    }
  }
}

/// `codes` is the code in the first message. That of each next message lies `step` bytes further. sum = the sum of sum
/// and the messages, or, if `is_mean`, factor · the sum of the messages.
__global__ void decode_kernel(const uint8_t* codes, int64_t messages, int64_t step, int bits,
                              const __grid_constant__ Levels levels, int64_t n, bool is_mean, float factor,
                              float* sum) {
  __shared__ float x[kHadamardBucket];
  __shared__ uint32_t signs[kSignWords];
  const int64_t b = blockIdx.x;
  const HadamardBucket place(n, bits, b);
  float own[kPerThread] = {};
#pragma unroll
  for (int j = 0; j < kPerThread; ++j)
    if (const int64_t i = threadIdx.x + j * kThreads; i < place.count && !is_mean) own[j] = sum[place.first + i];
  for (int64_t message = 0; message < messages; ++message, codes += step) {
    __syncthreads();
    const uint64_t seed = load_bytes(codes, 4) | uint64_t{load_bytes(codes + 4, 4)} << 32;
    draw_signs(seed, b, signs);
    const uint8_t* const planes = codes + place.planes_at;
    for (int64_t i = threadIdx.x; i < place.padded; i += kThreads) {
      uint32_t code = 0;
      for (int plane = 0; plane < bits; ++plane)
        code = code << 1 | (planes[plane * place.plane_bytes + i / 8] >> (i % 8) & 1u);
      x[i] = hadamard_level(code, levels, bits);
    }
    transform(x, place.padded);
    const auto scale = std::bit_cast<float>(load_bytes(codes + place.scale_at, 4));
#pragma unroll
    for (int j = 0; j < kPerThread; ++j)
      if (const int64_t i = threadIdx.x + j * kThreads; i < place.padded)
        own[j] += scale * with_sign(x[i], sign_of(signs, i));
  }
#pragma unroll
  for (int j = 0; j < kPerThread; ++j)
    if (const int64_t i = threadIdx.x + j * kThreads; i < place.count) sum[place.first + i] = factor * own[j];
}

Grid grid_of(const Tensor& gradient) {
  return {.blocks = dim3(static_cast<unsigned>(hadamard_buckets(gradient.numel())))};
}

void hadamard_encode(const Tensor& g, const RandomKey& key, int bits, Tensor& codes) {
  check_hadamard_encode(g, bits, codes);
  launch("hadamard_encode", g.device(), grid_of(g), encode_kernel, static_cast<const float*>(g.data<float>()),
         g.numel(), key, recorded_step(), bits, normal_levels(bits), codes.data<uint8_t>());
}

void decode(const char* operation, const Tensor& messages, int64_t codes_at, int bits, bool is_mean, float factor,
            Tensor& sum) {
  check_hadamard_decode(operation, messages, codes_at, bits, sum);
  launch(operation, sum.device(), grid_of(sum), decode_kernel,
         static_cast<const uint8_t*>(messages.data<uint8_t>() + codes_at), messages.size(0), messages.size(1), bits,
         normal_levels(bits), sum.numel(), is_mean, factor, sum.data<float>());
}

void hadamard_decode_add(const Tensor& messages, int64_t codes_at, int bits, Tensor& sum) {
  decode("hadamard_decode_add", messages, codes_at, bits, false, 1, sum);
}

void hadamard_mean(const Tensor& messages, int64_t codes_at, int bits, Tensor& mean) {
  decode("hadamard_mean", messages, codes_at, bits, true, hadamard_mean_factor(messages.size(0)), mean);
}

}  // namespace

void provide_hadamard() {
  kernels::hadamard_encode.provide(Target::cuda, hadamard_encode);
  kernels::hadamard_decode_add.provide(Target::cuda, hadamard_decode_add);
  kernels::hadamard_mean.provide(Target::cuda, hadamard_mean);
}

}  // namespace tern::cuda
