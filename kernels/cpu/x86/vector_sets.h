#pragma once

#include <array>
#include <cstdint>

namespace tern::cpu {

/// The instruction sets that the loops are compiled for, from narrow to wide.
enum class VectorSet : uint8_t { baseline, avx2, avx512 };
inline constexpr std::array kVectorSets{VectorSet::baseline, VectorSet::avx2, VectorSet::avx512};
/// The widest one that the processor may use now: see NarrowerVectors.
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

}  // namespace tern::cpu
