#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/data/chance.h"
#include "tern/data/extreme.h"

// Uses only + − × ÷ and √ on floats, without contraction. IEEE 754 defines their rounding, so all machines give the
// same bytes.
namespace tern {
namespace {

constexpr uint32_t kMostOtherLabels = 8, kOwnFeatures = 12, kOtherFeatures = 12;
/// Streams of `Purpose::extreme`. A sample's stream is the number of its split.
constexpr uint32_t kLabelStream = 2;

/// A value below n. Its octave, the values with equally many bits, is uniform, and so is the value in its octave. The
/// last octave ends at n, so it may have fewer values, which are then likelier than their neighbours.
int64_t draw_power_law(Chance& chance, int64_t n) {
  const int octaves = std::bit_width(static_cast<uint64_t>(n - 1)) + 1;
  const auto octave = chance.below(static_cast<uint32_t>(octaves));
  const int64_t first = octave == 0 ? 0 : int64_t{1} << (octave - 1);
  const int64_t last = octave == 0 ? 1 : std::min(2 * first, n);
  return first + chance.below(static_cast<uint32_t>(last - first));
}

/// What follows from a label: its own features, and the labels that may come with it.
struct LabelTraits {
  std::array<int64_t, kOwnFeatures> features;
  std::array<int64_t, kMostOtherLabels> labels;

  LabelTraits(const DrawnExtreme::Options& options, int64_t label) {
    Chance chance(RandomStream({.seed = options.seed,
                                .purpose = Purpose::extreme,
                                .owner = static_cast<uint32_t>(label),
                                .tensor = kLabelStream}));
    for (int64_t& feature : features) feature = draw_power_law(chance, options.features);
    for (int64_t& other : labels) other = draw_power_law(chance, options.labels);
  }
};

void check_count(int64_t found, const char* what) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  check_input(1 <= found && found <= kMost, "extreme: found ", found, " ", what, ", expected 1 to ", kMost);
}

}  // namespace

DrawnExtreme::DrawnExtreme(const Options& options) : options_(options) {
  check_count(options.features, "features");
  check_count(options.labels, "labels");
  check_count(options.samples, "samples");
}

std::vector<Field> DrawnExtreme::fields() const {
  return {{.name = "features", .shape = {options_.features}, .kind = FieldKind::sparse},
          {.name = "labels", .shape = {options_.labels}, .kind = FieldKind::sparse}};
}

Sample DrawnExtreme::sample(int64_t index) const {
  check(0 <= index && index < size(), "extreme: sample ", index, " of ", size());
  Chance chance(RandomStream({.seed = options_.seed,
                              .purpose = Purpose::extreme,
                              .owner = static_cast<uint32_t>(index),
                              .tensor = static_cast<uint32_t>(options_.split)}));
  const int64_t main = draw_power_law(chance, options_.labels);
  std::vector<int64_t> labels = {main};
  const LabelTraits traits(options_, main);
  labels.insert(labels.end(), traits.labels.begin(), traits.labels.begin() + chance.below(kMostOtherLabels + 1));
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());

  std::map<int64_t, float> features;
  for (const int64_t label : labels)
    for (const int64_t feature : LabelTraits(options_, label).features)
      if (chance.below(4) > 0) features[feature] += chance.uniform(0.5f, 1.5f);
  for (uint32_t i = 0; i < kOtherFeatures; ++i)
    features[draw_power_law(chance, options_.features)] += chance.uniform(0.5f, 1.5f);

  float square = 0;
  for (const auto& [feature, value] : features) square += value * value;
  const float norm = std::sqrt(square);
  std::vector<int64_t> columns;
  std::vector<float> values;
  for (const auto& [feature, value] : features) {
    columns.push_back(feature);
    values.push_back(value / norm);
  }
  return {{"features", Tensor::from<int64_t>({std::ssize(columns)}, columns)},
          {"features.values", Tensor::from<float>({std::ssize(values)}, values)},
          {"labels", Tensor::from<int64_t>({std::ssize(labels)}, labels)}};
}

uint32_t DrawnExtreme::fingerprint() const {
  const int64_t all[] = {static_cast<int64_t>(options_.seed), static_cast<int64_t>(options_.split), options_.features,
                         options_.labels, options_.samples};
  return crc32c(std::as_bytes(std::span(all)));
}

}  // namespace tern
