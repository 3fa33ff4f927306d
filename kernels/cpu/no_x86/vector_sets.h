#pragma once

#include <array>
#include <cstdint>

namespace tern::cpu {

/// The loops are compiled once, for the vectors that every processor of this kind has.
enum class VectorSet : uint8_t { baseline };
inline constexpr std::array kVectorSets{VectorSet::baseline};
VectorSet vector_set();

/// Calls `body()`. See x86/vector_sets.h for what the body may contain.
template <class Body>
[[gnu::flatten]] void vectorized(Body body) {
  body();
}

}  // namespace tern::cpu
