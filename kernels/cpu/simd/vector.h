#pragma once

// Loops written with vector types, compiled once for each instruction set. The headers that hold them keep all code to
// the file that includes them, in unnamed namespaces, and include no library header with code. So no function that is
// compiled for one processor can be linked into code for another.

namespace tern::cpu::simd {
namespace {

template <class T, int kWidth>
struct VectorOf {
  typedef T type __attribute__((vector_size(kWidth * sizeof(T))));
};
/// kWidth numbers in one register; arithmetic is elementwise, with scalars too.
template <class T, int kWidth>
using Vector = typename VectorOf<T, kWidth>::type;

}  // namespace
}  // namespace tern::cpu::simd
