#pragma once

#include <bit>
#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/core/parallel.h"

// There are two ways to compile code for an instruction set. Plain loops go through `vectorized`, and the compiler
// makes a version for each set. Loops written with vector types are in files of their own: see simd/kernels.h.

namespace tern::cpu {

/// The instruction sets that the loops are compiled for. `vector_set` returns the widest one that the processor has.
enum class VectorSet : uint8_t { baseline, avx2, avx512 };
VectorSet vector_set();

namespace detail {

// `flatten` inlines the whole body, so that its loops are compiled for the target of the enclosing function. The body
// is passed by value: its captures are then in registers, and no store through a pointer can alias them.
template <class Body>
[[gnu::flatten]] void run_baseline(Body body) {
  body();
}
template <class Body>
[[gnu::flatten, gnu::target("avx2,fma")]] void run_avx2(Body body) {
  body();
}
template <class Body>
[[gnu::flatten, gnu::target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]] void run_avx512(Body body) {
  body();
}

}  // namespace detail

/// Calls `body()` in the version for this processor's widest vectors. The body must capture by value and consist of
/// plain loops. The functions that it calls must be visible so that they can be inlined.
template <class Body>
void vectorized(Body body) {
  switch (vector_set()) {
    case VectorSet::baseline: return detail::run_baseline(body);
    case VectorSet::avx2: return detail::run_avx2(body);
    case VectorSet::avx512: return detail::run_avx512(body);
  }
}

/// `parallel_for` with a `vectorized` body(first, last).
template <class Body>
void parallel_vectorized(int64_t count, int64_t grain, Body body) {
  parallel_for(0, count, grain, [&](int64_t first, int64_t last) { vectorized([=] { body(first, last); }); });
}

// Load and store elements as f32. bf16 is read and written as bits, because loops over class objects do not vectorise.
inline float load(const float* p) { return *p; }
inline float load(const uint8_t* p) { return *p; }
inline float load(const BFloat16* p) { return std::bit_cast<float>(static_cast<uint32_t>(p->bits) << 16); }
inline void store(float* p, float value) { *p = value; }
inline void store(BFloat16* p, float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
  const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
  p->bits = static_cast<uint16_t>((is_nan ? word | 0x400000u : rounded) >> 16);
}

/// The minimum number of elements per thread for loops whose cost per element is little more than memory traffic.
inline constexpr int64_t kGrain = 1 << 14;

/// While this object lives, loops run as on a processor whose vectors are not wider than `set`. Tests use it to run the
/// code for other processors. Only one may exist at a time. Create and destroy it while no kernel runs.
class NarrowerVectors {
 public:
  explicit NarrowerVectors(VectorSet set);
  ~NarrowerVectors();
  NarrowerVectors(const NarrowerVectors&) = delete;
  NarrowerVectors& operator=(const NarrowerVectors&) = delete;
};

}  // namespace tern::cpu
