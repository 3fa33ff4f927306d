#pragma once

#include <cstdint>

namespace tern::kernels {

/// Division by a number known before a kernel starts, as a multiplication and a shift (Granlund and Montgomery,
/// "Division by invariant integers using multiplication", PLDI 1994, figure 4.1). Exact for every dividend of 32 bits.
class Divider {
 public:
  constexpr Divider() = default;
  /// `divisor` from 1 to 2^31.
  constexpr explicit Divider(uint32_t divisor) : divisor_(divisor) {
    while (uint64_t{1} << shift_ < divisor) ++shift_;
    multiplier_ = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift_) - divisor) / divisor + 1);
  }

  constexpr uint32_t divisor() const { return divisor_; }
  constexpr uint32_t quotient(uint32_t n) const {
    return static_cast<uint32_t>(((uint64_t{n} * multiplier_ >> 32) + n) >> shift_);
  }
  constexpr uint32_t remainder(uint32_t n) const { return n - quotient(n) * divisor_; }

 private:
  uint32_t divisor_ = 1, multiplier_ = 1, shift_ = 0;
};

}  // namespace tern::kernels
