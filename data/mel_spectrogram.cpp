#include "tern/data/mel_spectrogram.h"

#include <kissfft/kissfft.hh>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include "tern/core/error.h"

namespace tern {
namespace {

constexpr int64_t kWindow = 2048, kHop = 512;
constexpr double kHighest = 8000;  ///< Hz
constexpr double kFloor = -80;     ///< dB
constexpr double kLeastPower = 1e-10;

// Slaney's scale ("Auditory Toolbox", 1998): linear up to 1,000 Hz, logarithmic above.
constexpr double kHertzPerMel = 200.0 / 3, kKneeHertz = 1000, kKneeMel = kKneeHertz / kHertzPerMel;
const double kLogStep = std::log(6.4) / 27;  ///< of a mel above the knee

double mel(double hertz) {
  return hertz < kKneeHertz ? hertz / kHertzPerMel : kKneeMel + std::log(hertz / kKneeHertz) / kLogStep;
}
double hertz(double mel) {
  return mel < kKneeMel ? mel * kHertzPerMel : kKneeHertz * std::exp((mel - kKneeMel) * kLogStep);
}

}  // namespace

MelSpectrogram::MelSpectrogram() : window_(kWindow) {
  for (size_t i = 0; i < window_.size(); ++i)
    window_[i] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / kWindow);

  const auto edge = [](int64_t i) { return hertz(mel(kHighest) * static_cast<double>(i) / (kBands + 1)); };
  for (int64_t band = 0; band < kBands; ++band) {
    const double left = edge(band), middle = edge(band + 1), right = edge(band + 2);
    Filter filter;
    for (int64_t i = 0; i <= kWindow / 2; ++i) {
      const double frequency = static_cast<double>(i) * kRate / kWindow;
      const double weight = std::min((frequency - left) / (middle - left), (right - frequency) / (right - middle));
      if (weight <= 0) continue;
      if (filter.weights.empty()) filter.first = i;
      filter.weights.push_back(weight * 2 / (right - left));  // every band has the same area
    }
    filters_.push_back(std::move(filter));
  }
}

void MelSpectrogram::compute(std::span<const int16_t> samples, std::span<float> features) const {
  check(std::ssize(features) == kBands * kFrames, "mel spectrogram: room for ", features.size(), " features, it has ",
        kBands * kFrames);
  const kissfft<double> fft(kWindow / 2, false);
  const int64_t count = std::min<int64_t>(std::ssize(samples), kRate);
  std::array<double, kWindow> frame;
  std::array<std::complex<double>, kWindow / 2> spectrum;
  std::array<double, kWindow / 2 + 1> power;
  std::vector<double> decibels(features.size());
  for (int64_t t = 0; t < kFrames; ++t) {
    for (int64_t i = 0; i < kWindow; ++i) {
      const int64_t at = t * kHop + i - kWindow / 2;
      frame[static_cast<size_t>(i)] =
          0 <= at && at < count ? window_[static_cast<size_t>(i)] * samples[static_cast<size_t>(at)] / 32768 : 0;
    }
    fft.transform_real(frame.data(), spectrum.data());
    std::ranges::transform(spectrum, power.begin(), [](const auto& value) { return std::norm(value); });
    power.front() = spectrum[0].real() * spectrum[0].real();  // the first value holds frequencies 0 and 1,024
    power.back() = spectrum[0].imag() * spectrum[0].imag();
    for (size_t band = 0; band < filters_.size(); ++band) {
      const Filter& filter = filters_[band];
      double sum = 0;
      for (size_t i = 0; i < filter.weights.size(); ++i)
        sum += filter.weights[i] * power[static_cast<size_t>(filter.first) + i];
      decibels[band * kFrames + static_cast<size_t>(t)] = 10 * std::log10(std::max(sum, kLeastPower));
    }
  }
  const double loudest = std::ranges::max(decibels);
  std::ranges::transform(decibels, features.begin(),
                         [&](double value) { return static_cast<float>(std::max(value - loudest, kFloor)); });
}

}  // namespace tern
