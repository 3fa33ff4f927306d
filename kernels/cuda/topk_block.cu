#include "tern/kernels/topk_block.h"

#include <limits>

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/topk_block_arithmetic.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

static_assert(kTableLanes == kThreads);
constexpr int kWarps = kThreads / kWarp;

/// The magnitudes of a block of the grid. Those of the first elements are in shared memory.
struct Magnitudes {
  static constexpr int64_t kHeld = 4096;
  const float* g;
  const BlockGrid& grid;
  int64_t block, count;
  uint32_t* held;

  /// All threads of the block must call it together.
  __device__ void load() const {
    for (int64_t i = threadIdx.x; i < count && i < kHeld; i += kThreads) held[i] = far(i);
    __syncthreads();
  }
  __device__ uint32_t operator[](int64_t i) const { return i < kHeld ? held[i] : far(i); }

  /// Number of elements with at least this magnitude. All threads of the block get it, and must call it together.
  __device__ int64_t at_least(uint32_t magnitude) const {
    int own = 0;
    for (int64_t i = threadIdx.x; i < count; i += kThreads) own += (*this)[i] >= magnitude ? 1 : 0;
    return fold_group<kThreads>(own, Sum{});
  }

 private:
  __device__ uint32_t far(int64_t i) const { return magnitude_bits(g[grid.at(block, i)]); }
};

/// A magnitude that the k largest elements reach, found bit by bit from the highest. Others reach it only if they equal
/// the k-th largest.
__device__ uint32_t threshold_of(const Magnitudes& magnitudes, int64_t k) {
  uint32_t found = 0;
  for (uint32_t bit = 1u << 30; bit != 0; bit >>= 1) {
    const int64_t count = magnitudes.at_least(found | bit);
    if (count >= k) found |= bit;
    if (count == k) break;
  }
  return found;
}

/// The threads of the block that vote for something: those before this thread, and all.
struct Votes {
  int before, all;
};
/// All threads of the block must call it together.
__device__ Votes count_votes(bool vote) {
  __shared__ int of_warp[kWarps];
  const uint32_t ballot = __ballot_sync(~0u, vote);
  const int lane = lane_id(), warp = static_cast<int>(threadIdx.x) / kWarp;
  __syncthreads();
  if (lane == 0) of_warp[warp] = __popc(ballot);
  __syncthreads();
  Votes votes{__popc(ballot & ((1u << lane) - 1)), 0};
  for (int w = 0; w < kWarps; ++w) {
    votes.before += w < warp ? of_warp[w] : 0;
    votes.all += of_warp[w];
  }
  return votes;
}

/// Each CUDA block chooses the kept elements of one block of the grid.
__global__ void choose_kernel(const float* g, const __grid_constant__ TopKBlockLayout layout, uint32_t* places,
                              float* values, float* broken) {
  __shared__ uint32_t held[Magnitudes::kHeld];
  const int64_t block = blockIdx.x, k = layout.kept(block);
  const Magnitudes magnitudes{g, layout.grid, block, layout.grid.elements(block), held};
  magnitudes.load();
  const uint32_t threshold = threshold_of(magnitudes, k);
  int64_t equals = k - magnitudes.at_least(threshold + 1);  // elements of this magnitude that are still to be kept
  int64_t next = layout.kept_before(block);
  for (int64_t first = 0; first < magnitudes.count; first += kThreads) {
    const int64_t i = first + threadIdx.x;
    const uint32_t magnitude = i < magnitudes.count ? magnitudes[i] : 0;
    const bool is_equal = i < magnitudes.count && magnitude == threshold;
    const Votes ties = count_votes(is_equal);
    const bool is_kept = i < magnitudes.count && (magnitude > threshold || (is_equal && ties.before < equals));
    const Votes kept = count_votes(is_kept);
    if (is_kept) {
      places[next + kept.before] = static_cast<uint32_t>(i);
      values[next + kept.before] = g[layout.grid.at(block, i)];
      if (magnitude >= kInfinityBits) *broken = 1;  // several threads may store the same 1
    }
    equals -= ties.all;
    next += kept.all;
  }
}

/// The sum of value(i) in the order of `table_sum`. All threads of the block get it, and must call it together.
template <class Value>
__device__ double ordered_sum(int64_t count, Value value) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += value(i);
  return fold_group<kThreads>(sum, Sum{});
}

/// One block makes the table of a tensor. It reads the values three times.
__global__ void table_kernel(const float* values, int64_t n, uint8_t* value_codes, uint8_t* bytes, float* broken) {
  const double mean = ordered_sum(n, [=](int64_t i) { return double{values[i]}; }) / static_cast<double>(n);
  const double squares = ordered_sum(n, [=](int64_t i) { return (values[i] - mean) * (values[i] - mean); });
  const double deviation = ::sqrt(value_variance(squares, n));
  double sums[kValueCodes] = {};
  int64_t counts[kValueCodes] = {};
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const uint8_t own = n <= kValueCodes ? static_cast<uint8_t>(i) : value_code(values[i], mean, deviation);
    value_codes[i] = own;
#pragma unroll
    for (int code = 0; code < kValueCodes; ++code)
      if (code == own) {
        sums[code] += values[i] - mean;
        ++counts[code];
      }
  }
  ValueTable table;
  table.mean = static_cast<float>(mean);
#pragma unroll
  for (int code = 0; code < kValueCodes; ++code)
    table.offsets[static_cast<size_t>(code)] =
        value_offset(fold_group<kThreads>(sums[code], Sum{}), fold_group<kThreads>(counts[code], Sum{}));
  if (threadIdx.x != 0) return;
  store_bytes(bytes, 4, std::bit_cast<uint32_t>(table.mean));
  for (int code = 0; code < kValueCodes; ++code)
    store_bytes(bytes + 4 * (1 + code), 4, std::bit_cast<uint32_t>(table.offsets[static_cast<size_t>(code)]));
  if (!table.is_finite()) *broken = 1;
}

/// Byte `at` of a code, which is not one of the table. places, values and codes: one for each kept element.
__device__ uint8_t code_byte(const TopKBlockLayout& layout, int64_t at, const uint32_t* places, const float* values,
                             const uint8_t* codes) {
  if (at >= layout.values_at()) {
    const int64_t byte = at - layout.values_at();
    if (!layout.coded_values) return static_cast<uint8_t>(std::bit_cast<uint32_t>(values[byte / 4]) >> 8 * (byte % 4));
    uint32_t four = 0;
    for (int64_t i = 4 * byte; i < 4 * byte + 4; ++i) four = four << 2 | (i < layout.kept() ? codes[i] : 0u);
    return static_cast<uint8_t>(four);
  }
  uint32_t byte = 0;
  for (int64_t bit = 8 * (at - layout.places_at()), end = bit + 8; bit < end;) {
    const int64_t block = layout.block_of_bit(bit), begin = layout.places_begin(block);
    const int width = layout.place_bits(block);
    const int64_t i = width == 0 ? layout.kept(block) : (bit - begin) / width;
    if (i >= layout.kept(block)) break;  // what is left of the last byte
    const auto first = static_cast<int>(bit - begin - i * width), left = static_cast<int>(end - bit),
               taken = std::min(width - first, left);
    const uint32_t bits = places[layout.kept_before(block) + i] >> (width - first - taken) & ((1u << taken) - 1);
    byte |= bits << (left - taken);
    bit += taken;
  }
  return static_cast<uint8_t>(byte);
}

/// Each thread makes one byte.
__global__ void pack_kernel(const __grid_constant__ TopKBlockLayout layout, const uint32_t* places, const float* values,
                            const uint8_t* value_codes, uint8_t* bytes) {
  for (int64_t at = layout.places_at() + global_thread(); at < layout.bytes(); at += global_threads())
    bytes[at] = code_byte(layout, at, places, values, value_codes);
}

/// Each CUDA block adds one block of the grid. `codes` is the code in the first message. That of each next message lies
/// `step` bytes further. If `senders` is not null, it counts the messages in which an element is not 0.
__global__ void decode_kernel(const uint8_t* codes, int64_t messages, int64_t step,
                              const __grid_constant__ TopKBlockLayout layout, float factor, float* sum,
                              float* senders) {
  const int64_t block = blockIdx.x, elements = layout.grid.elements(block);
  for (int64_t message = 0; message < messages; ++message, codes += step) {
    ValueTable table;
    if (layout.coded_values) {
      table.mean = std::bit_cast<float>(load_bytes(codes, 4));
      for (int code = 0; code < kValueCodes; ++code)
        table.offsets[static_cast<size_t>(code)] = std::bit_cast<float>(load_bytes(codes + 4 * (1 + code), 4));
    }
    for (int64_t i = threadIdx.x; i < layout.kept(block); i += kThreads) {
      const KeptElement kept = kept_element(layout, codes, table, block, i);
      if (kept.place >= elements) continue;
      const int64_t at = layout.grid.at(block, kept.place);
      sum[at] += factor * kept.value;
      if (senders != nullptr && kept.value != 0) senders[at] += 1;
    }
    __syncthreads();
  }
}

Grid grid_of(const TopKBlockLayout& layout) { return {.blocks = dim3(static_cast<unsigned>(layout.grid.count()))}; }

void topk_block_encode(const Tensor& g, const TopKBlockOptions& options, Tensor& codes, Tensor& broken) {
  const char* const operation = "topk_block_encode";
  const TopKBlockLayout layout(g.shape(), options);
  check_topk_block_encode(g, layout, codes, broken);
  if (g.numel() == 0) return;
  const int64_t n = layout.kept();
  const auto bytes_for = [&](int64_t count) {
    return Tensor::empty({count}, {.dtype = DType::u8, .device = g.device()});
  };
  Tensor place_bytes = bytes_for(n * static_cast<int64_t>(sizeof(uint32_t)));
  Tensor values = Tensor::empty({n}, {.device = g.device()}), value_codes = bytes_for(layout.coded_values ? n : 0);
  auto* const places = reinterpret_cast<uint32_t*>(place_bytes.data<uint8_t>());
  auto* const bytes = codes.data<uint8_t>();
  launch(operation, g.device(), grid_of(layout), choose_kernel, static_cast<const float*>(g.data<float>()), layout,
         places, values.data<float>(), broken.data<float>());
  if (layout.coded_values)
    launch(operation, g.device(), Grid{.blocks = dim3(1)}, table_kernel,
           static_cast<const float*>(values.data<float>()), n, value_codes.data<uint8_t>(), bytes,
           broken.data<float>());
  launch(operation, g.device(), grid_over(layout.bytes() - layout.places_at()), pack_kernel, layout,
         static_cast<const uint32_t*>(places), static_cast<const float*>(values.data<float>()),
         static_cast<const uint8_t*>(value_codes.data<uint8_t>()), bytes);
}

/// sum += factor · each message. `senders` may be undefined; otherwise it is like `sum`.
void decode_add(const char* operation, const Tensor& messages, int64_t codes_at, const TopKBlockOptions& options,
                float factor, const Tensor& sum, const Tensor& senders) {
  const TopKBlockLayout layout(sum.shape(), options);
  check_topk_block_decode(messages, codes_at, layout, sum);
  launch(operation, sum.device(), grid_of(layout), decode_kernel,
         static_cast<const uint8_t*>(messages.data<uint8_t>() + codes_at), messages.size(0), messages.size(1), layout,
         factor, sum.data<float>(), senders.defined() ? senders.data<float>() : nullptr);
}

void topk_block_decode_add(const Tensor& messages, int64_t codes_at, const TopKBlockOptions& options, float factor,
                           Tensor& sum) {
  decode_add("topk_block_decode_add", messages, codes_at, options, factor, sum, {});
}

/// Each step by a kernel of its own.
void topk_block_mean(const Tensor& messages, int64_t codes_at, const TopKBlockOptions& options, MeanOver over,
                     Tensor& mean) {
  const auto count = static_cast<double>(messages.size(0));
  Tensor senders = over == MeanOver::senders ? Tensor::zeros(mean.shape(), mean.options()) : Tensor();
  kernels::fill.on(Target::cuda)(mean, 0);
  decode_add("topk_block_mean", messages, codes_at, options, 1, mean, senders);
  if (over == MeanOver::messages) return kernels::scale.on(Target::cuda)(mean, 1 / count, mean);
  kernels::clamp.on(Target::cuda)(senders, {.low = 1, .high = count}, senders);
  kernels::divide.on(Target::cuda)(mean, senders, mean);
}

}  // namespace

void provide_topk_block() {
  kernels::topk_block_encode.provide(Target::cuda, topk_block_encode);
  kernels::topk_block_decode_add.provide(Target::cuda, topk_block_decode_add);
  kernels::topk_block_mean.provide(Target::cuda, topk_block_mean);
}

}  // namespace tern::cuda
