#pragma once

// Rules for loops that are written with vector types and compiled once for each instruction set. The headers that hold
// them put all code in unnamed namespaces, so that it belongs only to the including file. They include no library
// header with code. A function compiled for one processor can then never be linked into code for another.

namespace tern::cpu::simd {
namespace {

template <class T, int kWidth>
struct VectorOf {
  typedef T type __attribute__((vector_size(kWidth * sizeof(T))));
};
/// kWidth numbers in one register. Arithmetic is elementwise, also with scalars.
template <class T, int kWidth>
using Vector = typename VectorOf<T, kWidth>::type;

}  // namespace
}  // namespace tern::cpu::simd
