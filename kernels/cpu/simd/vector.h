#pragma once

#include <cstddef>
#include <cstdint>

// The headers of this folder that are compiled once per instruction set keep all code to the file that includes them,
// in unnamed namespaces, and include no library header with code: so no function compiled for one processor can be
// linked into code for another.

namespace tern::cpu::simd {
namespace {

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

/// Vectors of half the width end rows where they suffice, from 16 floats on: some processors take such a vector in two
/// halves.
template <int kWidth>
constexpr int kTailWidth = kWidth > 8 ? kWidth / 2 : kWidth;

}  // namespace
}  // namespace tern::cpu::simd
