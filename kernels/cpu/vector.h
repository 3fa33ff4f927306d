#pragma once

#include <bit>
#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/core/parallel.h"

// Code for the processor's instruction set comes in two forms. Plain loops pass through `vectorized`, which has the
// compiler make them for each set. Loops written with vector types are compiled by themselves: see simd/kernels.h.

namespace tern::cpu {

/// The vector instructions that loops here are compiled for: the widest of the processor's.
enum class VectorSet : uint8_t { baseline, avx2, avx512 };
VectorSet vector_set();

namespace detail {

// Flattening inlines the whole body, so that its loops are compiled for the target of the function around them. The
// body is taken by value: its captures then live in registers, where no store through a pointer can alias them.
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

/// Calls `body()` compiled for this processor's widest vectors. The body captures by value and consists of plain
/// loops; what it calls must be visible to be inlined.
template <class Body>
void vectorized(Body body) {
  switch (vector_set()) {
    case VectorSet::baseline: return detail::run_baseline(body);
    case VectorSet::avx2: return detail::run_avx2(body);
    case VectorSet::avx512: return detail::run_avx512(body);
  }
}

/// `parallel_for` whose body(first, last) is `vectorized`.
template <class Body>
void parallel_vectorized(int64_t count, int64_t grain, Body body) {
  parallel_for(0, count, grain, [&](int64_t first, int64_t last) { vectorized([=] { body(first, last); }); });
}

// Elements as f32. A bf16 is read and written through its bits, since loops over class objects do not vectorise.
inline float load(const float* p) { return *p; }
inline float load(const BFloat16* p) { return std::bit_cast<float>(static_cast<uint32_t>(p->bits) << 16); }
inline void store(float* p, float value) { *p = value; }
inline void store(BFloat16* p, float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
  const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
  p->bits = static_cast<uint16_t>((is_nan ? word | 0x400000u : rounded) >> 16);
}

/// Elements worth a thread of their own where each costs little more than its memory traffic.
inline constexpr int64_t kGrain = 1 << 14;

/// While one lives, loops run as on a processor with no wider vectors than `set`: so tests reach what other processors
/// run. One at a time, made and destroyed while no kernel runs.
class NarrowerVectors {
 public:
  explicit NarrowerVectors(VectorSet set);
  ~NarrowerVectors();
  NarrowerVectors(const NarrowerVectors&) = delete;
  NarrowerVectors& operator=(const NarrowerVectors&) = delete;
};

}  // namespace tern::cpu
