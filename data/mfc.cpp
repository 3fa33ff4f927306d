#include "tern/data/mfc.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "tern/core/error.h"

namespace tern {
namespace {

constexpr size_t kNumber = 4;          ///< bytes of a number
constexpr float kMostCepstrum = 1e6f;  ///< far above cepstra, and small enough for sums of squares

uint32_t big_endian(std::span<const uint8_t> file, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < kNumber; ++i) number = number << 8 | file[at + i];
  return number;
}

}  // namespace

Tensor parse_mfc(std::span<const uint8_t> file, const std::string& name, int64_t columns) {
  check_input(file.size() >= kNumber, name, ": found ", file.size(), " bytes, expected a count of ", kNumber,
              " bytes and the numbers");
  const auto count = static_cast<int32_t>(big_endian(file, 0));
  const size_t rest = file.size() - kNumber;
  check_input(count >= 0 && rest == static_cast<size_t>(count) * kNumber, name, ": byte 0: found a count of ", count,
              " numbers, expected ", rest / kNumber, ": the file has ", rest, " bytes behind it");
  check_input(count > 0 && count % columns == 0, name, ": byte 0: found a count of ", count,
              " numbers, expected a multiple of ", columns, " and one frame or more");
  Tensor frames = Tensor::empty({count / columns, columns});
  const auto numbers = frames.span<float>();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t at = kNumber * (i + 1);
    numbers[i] = std::bit_cast<float>(big_endian(file, at));
    if (!(std::abs(numbers[i]) <= kMostCepstrum))  // also for NaN
      fail_input({name, ": byte ", at, ": found ", fmt::format("{}", numbers[i]), ", expected a number within ±1e6"});
  }
  return frames;
}

}  // namespace tern
