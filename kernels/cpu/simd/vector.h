#pragma once

#include <cstddef>
#include <cstdint>

// The files of this folder that are compiled once per instruction set hold only templates over the vector width, and
// include no library header with code: so no function compiled for one processor can be linked into code for another.

namespace tern::cpu::simd {

template <int kWidth>
struct VectorOf {
  typedef float type __attribute__((vector_size(kWidth * sizeof(float))));
};
/// kWidth floats in one register; arithmetic is elementwise, with scalars too.
template <int kWidth>
using Vector = typename VectorOf<kWidth>::type;

template <int kWidth>
inline Vector<kWidth> load(const float* p) {
  Vector<kWidth> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <int kWidth>
inline void store(float* p, Vector<kWidth> v) {
  __builtin_memcpy(p, &v, sizeof v);
}

}  // namespace tern::cpu::simd
