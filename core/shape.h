#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace tern {

/// The extents of a tensor, outermost dimension first; at most `kMaxRank` dimensions. A value type. A negative
/// dimension index counts from the end, as in PyTorch.
class Shape {
 public:
  static constexpr int kMaxRank = 8;
  static constexpr int64_t kMostElements = int64_t{1} << 48;  ///< an extent of 0 counts as 1

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents);
  explicit Shape(std::span<const int64_t> extents);

  int rank() const { return rank_; }
  int64_t operator[](int dimension) const { return extents_[normalize(dimension)]; }
  int64_t& operator[](int dimension) { return extents_[normalize(dimension)]; }
  /// Product of the extents; 1 for rank 0.
  int64_t numel() const;
  /// Product of the extents from `dimension` to the last.
  int64_t numel_from(int dimension) const;

  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return extents_.data() + rank_; }

  /// Returns the index in [0, rank) of `dimension`. Throws if there is no such dimension.
  int normalize(int dimension) const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

/// For example "[64, 3, 32, 32]".
std::string to_string(const Shape& shape);

/// The shape that both shapes broadcast to, aligned at the last dimension as in PyTorch. Throws an error that names
/// `operation` if the shapes do not broadcast.
Shape broadcast(const Shape& a, const Shape& b, const char* operation);

/// The index in [0, extent) whose element lies at `i`, counted from the first element, in the mirrored row.
constexpr int64_t mirrored(int64_t i, int64_t extent) { return i < 0 ? -i : i < extent ? i : 2 * (extent - 1) - i; }

}  // namespace tern
