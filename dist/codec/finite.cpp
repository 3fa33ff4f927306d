#include "tern/dist/codec/finite.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tern/core/error.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/watch_numbers.h"

namespace tern {

Tensor finite_statistics(const GradientTag& tag, const Tensor& gradient, int64_t bucket) {
  return finite_statistics(FusedGradients{{tag, gradient}}, bucket);
}

Tensor finite_statistics(const FusedGradients& message, int64_t bucket) {
  int64_t buckets = 0;
  for (const auto& [tag, gradient] : message) buckets += kernels::bucket_count(gradient.numel(), bucket);
  const Tensor there = Tensor::empty({buckets, 3}, {.dtype = DType::f64, .device = message.front().gradient.device()});
  std::vector<kernels::MeasuredGradient> measured;
  int64_t row = 0;
  for (const auto& [tag, gradient] : message) {
    const int64_t next = row + kernels::bucket_count(gradient.numel(), bucket);
    measured.push_back({gradient, there.slice(row, next)});
    row = next;
  }
  kernels::gradient_statistics(measured, bucket);
  const Tensor statistics = there.to(Device{});
  const auto* values = statistics.data<double>();
  for (const auto& [tag, gradient] : message)
    for (int64_t b = kernels::bucket_count(gradient.numel(), bucket); b > 0; --b, values += 3)
      check_input(std::isfinite(values[2]), "gradient of '", tag.name, "' has NaN or infinite elements");
  return statistics;
}

void check_finite(const GradientTag& tag, std::span<const float> numbers, const char* fault) {
  check_input(std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); }), "gradient of '", tag.name, "' ",
              fault);
}

std::vector<float> floats_of(const Tensor& bytes) {
  std::vector<float> floats(bytes.bytes() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), bytes.raw_data(), bytes.bytes());
  return floats;
}

void GradientWatch::note(const FusedGradients& message, std::span<const Tensor> numbers, float most) {
  const Device device = message.front().gradient.device();
  auto noted = noted_.find(tag_of(message).name);
  if (noted == noted_.end()) {
    std::vector<std::string> names;
    for (const auto& [tag, gradient] : message) names.push_back(tag.name);
    noted = noted_.emplace(tag_of(message).name, Noted{std::move(names), Notices(device, message.size())}).first;
  }
  check(noted->second.names.size() == message.size(), "the message from '", noted->second.names.front(), "' to '",
        noted->second.names.back(), "' has ", message.size(), " gradients, before it had ", noted->second.names.size());
  std::vector<kernels::WatchedNumbers> watched;
  for (size_t i = 0; i < message.size(); ++i) watched.push_back({numbers[i], noted->second.notices.at(i)});
  kernels::watch_numbers(watched, most, message.front().tag.key.step);
}

void GradientWatch::confirm(int64_t steps) const {
  for (const auto& [key, noted] : noted_)
    for (size_t i = 0; i < noted.names.size(); ++i)
      if (const int64_t number = noted.notices.read(i); number != 0 && number <= steps)
        fail_input({"gradient of '", noted.names[i], "' ", fault_});
}

void check_scalers(std::span<const float> scalers) {
  check(std::ranges::all_of(scalers, [](float s) { return std::isfinite(s) && s >= 0; }),
        "message holds a scaler that is negative or not finite");
}

}  // namespace tern
