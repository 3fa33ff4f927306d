#pragma once

#include <string>
#include <vector>

namespace tern {

enum class Scale { linear, logarithmic };

/// One axis of a chart: the range it shows and where its labels stand. A value.
class Axis {
 public:
  /// Shows [low, high], widened a little where it is empty; a logarithmic axis needs low > 0.
  Axis(double low, double high, Scale scale);

  /// Where `value` lies between the ends: 0 at the low one, 1 at the high one; not clamped.
  double position(double value) const;
  /// About `count` values at round numbers (1, 2 or 5 times a power of ten) within the range.
  std::vector<double> ticks(int count) const;

 private:
  std::vector<double> linear_ticks(int count) const;
  std::vector<double> logarithmic_ticks(int count) const;

  double low_, high_;
  Scale scale_;
};

/// "0.05", "1,500", "20k": as short as `value` allows.
std::string tick_label(double value);

}  // namespace tern
