#pragma once

#include <bit>
#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/core/parallel.h"
#include "tern/kernels/cpu/processor/vector_sets.h"

// There are two ways to compile code for an instruction set. Plain loops go through `vectorized`, and the compiler
// makes a version for each set. Loops written with vector types are in files of their own: see simd/kernels.h.
//
// The folder `processor` is x86 or no_x86: CMake makes a link with this name in the build folder.

namespace tern::cpu {

namespace detail {
VectorSet processor_vector_set();  ///< the widest one that the processor has
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
