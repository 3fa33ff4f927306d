#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/dist/codec/blocks.h"
#include "tern/dist/codec/entropy_coders.h"
#include "tern/dist/codec/spec.h"
#include "tern/dist/comm/bytes.h"

namespace tern {
namespace {

/// Magnitudes of floats compare as integers by these bits; those of NaN and infinities are the largest.
uint32_t magnitude_bits(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }

/// The k-th largest of `values`, which are reordered.
uint32_t kth_largest(std::vector<uint32_t>& values, int64_t k) {
  std::ranges::nth_element(values, values.begin() + (k - 1), std::greater());
  return values[static_cast<size_t>(k - 1)];
}

/// The places of the k elements of largest magnitude, in rising order; of equal magnitudes, the first ones.
/// `magnitudes` are of `magnitude_bits`. Each of k runs has an element that is not below the k-th largest of the runs'
/// maxima. So no element below that one is among the k largest, and most runs have none.
std::vector<uint32_t> largest(std::span<const uint32_t> magnitudes, int64_t k) {
  constexpr size_t kRun = 16;
  const size_t n = magnitudes.size(), whole = n / kRun, runs = (n + kRun - 1) / kRun;
  std::vector<uint32_t> maxima(runs);
  for (size_t r = 0; r < whole; ++r) {
    uint32_t most = 0;
    for (size_t i = 0; i < kRun; ++i) most = std::max(most, magnitudes[kRun * r + i]);
    maxima[r] = most;
  }
  for (size_t i = kRun * whole; i < n; ++i) maxima[whole] = std::max(maxima[whole], magnitudes[i]);
  uint32_t least = 0;
  if (static_cast<size_t>(k) <= runs) {
    std::vector<uint32_t> order = maxima;
    least = kth_largest(order, k);
  }
  std::vector<uint32_t> places, found;
  for (size_t r = 0; r < runs; ++r) {
    if (maxima[r] < least) continue;
    for (size_t i = kRun * r; i < std::min(kRun * (r + 1), n); ++i)
      if (magnitudes[i] >= least) {
        places.push_back(static_cast<uint32_t>(i));
        found.push_back(magnitudes[i]);
      }
  }
  const uint32_t smallest = kth_largest(found, k);
  int64_t equals = k - std::ranges::count_if(found, [=](uint32_t m) { return m > smallest; });
  std::erase_if(places,
                [&](uint32_t i) { return magnitudes[i] < smallest || (magnitudes[i] == smallest && equals-- <= 0); });
  return places;
}

/// Throws InputError unless these elements, the largest of a gradient, are finite. If they are, all are.
void check_largest(const GradientTag& tag, std::span<const float> values) {
  check_input(std::ranges::all_of(values, [](float value) { return std::isfinite(value); }), "gradient of '", tag.name,
              "' has NaN or infinite elements");
}

/// Keeps the k = ⌈ratio·n⌉ elements of largest magnitude; of equal magnitudes, the first ones. A message holds their
/// u32 indices, ascending, then their values.
class TopK final : public GradientCodec {
 public:
  explicit TopK(double ratio) : ratio_(ratio) {}

  std::string spec() const override { return join({"topk:ratio=", ratio_}); }
  CodecTraits traits() const override {
    return {.promise = CodecPromise::contraction, .bits = 64 * ratio_, .sparse = true};
  }
  int64_t most_bytes(const Shape& shape) const override { return 8 * kept(shape.numel()); }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    const auto g = gradient.span<float>();
    std::vector<uint32_t> magnitudes(g.size());
    std::ranges::transform(g, magnitudes.begin(), magnitude_bits);
    const std::vector<uint32_t> indices = largest(magnitudes, kept(gradient.numel()));
    std::vector<float> values;
    for (const uint32_t i : indices) values.push_back(g[i]);
    check_largest(tag, values);
    append_values<uint32_t>(bytes, indices);
    append_values<float>(bytes, values);
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    ByteReader reader(message);
    const auto k = static_cast<size_t>(kept(sum.numel()));
    std::vector<uint32_t> indices(k);
    std::vector<float> values(k);
    reader.values(std::span(indices));
    reader.values(std::span(values));
    for (size_t i = 0; i < k; ++i) {
      check(indices[i] < sum.numel() && (i == 0 || indices[i] > indices[i - 1]), "index ", i, " of the message is ",
            indices[i], ", expected ascending ones below ", sum.numel());
      check(std::isfinite(values[i]), "value ", i, " of the message is not finite");
    }
    for (size_t i = 0; i < k; ++i) sum.data<float>()[indices[i]] += values[i];
  }

 private:
  int64_t kept(int64_t n) const {
    check(n < int64_t{1} << 32, "topk: ", n, " elements, expected below 2^32");
    return std::min(n, static_cast<int64_t>(std::ceil(ratio_ * static_cast<double>(n))));
  }

  double ratio_;
};

constexpr int kValueCodes = 4;
constexpr int64_t kTableBytes = 4 * (1 + kValueCodes);

/// The codes of the values of a tensor (SparseLoCo: one-covenant/templar, compress.py). With mean v̄ and standard
/// deviation σ (over n - 1), code q = clamp(round((v - v̄) / (6σ/4)) + 2, 0, 3) stands for v̄ plus the mean of v - v̄
/// over all values with this code. If there are at most four values, each has a code of its own, so that none is lost.
struct ValueTable {
  float mean = 0;
  std::array<float, kValueCodes> offsets = {};

  float value(uint32_t code) const { return mean + offsets[code]; }

  /// Makes the table, and appends the code of each value.
  ValueTable(std::span<const float> values, std::vector<uint8_t>& codes) {
    double sum = 0, squares = 0;
    for (const float v : values) sum += v;
    const double middle = sum / static_cast<double>(values.size());
    for (const float v : values) squares += (v - middle) * (v - middle);
    const double deviation = values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
    double sums[kValueCodes] = {}, counts[kValueCodes] = {};
    for (const float v : values) {
      const double place = deviation > 0 ? std::nearbyint((v - middle) / (6 * deviation / kValueCodes)) : 0;
      const bool few = values.size() <= kValueCodes;
      const auto code = static_cast<uint8_t>(few ? codes.size() : std::clamp(place + 2, 0.0, kValueCodes - 1.0));
      codes.push_back(code);
      sums[code] += v - middle;
      counts[code] += 1;
    }
    mean = static_cast<float>(middle);
    for (size_t code = 0; code < kValueCodes; ++code)
      offsets[code] = static_cast<float>(counts[code] == 0 ? 0 : sums[code] / counts[code]);
  }
  explicit ValueTable(ByteReader& reader) : mean(reader.value<float>()) {
    reader.values(std::span<float>(offsets));
    const auto finite = [](float value) { return std::isfinite(value); };
    check(finite(mean) && std::ranges::all_of(offsets, finite), "message has a table that is not finite");
  }
  void append(std::vector<std::byte>& bytes) const {
    append_value(bytes, mean);
    append_values<float>(bytes, offsets);
  }
};

struct BlockTopKOptions {
  int64_t keep = 64;  ///< of a block of side × side elements
  int64_t side = 64, run = 4096;
  bool short_in_full = false;  ///< a shorter block keeps `keep` elements too
  bool coded_values = true;    ///< 2 bits a value; otherwise f32
  double decay = 0;            ///< of the residual; 0: there is none
};

/// Keeps the elements of largest magnitude of each block; of equal magnitudes, the first ones. A message holds the
/// table of the values if they are coded, then the places of the kept elements in their blocks, in rising order and
/// with as many bits as the block needs, then the values.
class BlockTopK final : public GradientCodec {
 public:
  explicit BlockTopK(const BlockTopKOptions& options) : options_(options) {}

  std::string spec() const override {
    return join({"topk-block:keep=", options_.keep, ",side=", options_.side, ",run=", options_.run, ",short=",
                 options_.short_in_full ? "full" : "share", ",bits=", value_bits(), ",decay=", options_.decay});
  }
  CodecTraits traits() const override {
    const auto block = static_cast<double>(full_block());
    return {.promise = CodecPromise::contraction,
            .bits = static_cast<double>(std::min(options_.keep, full_block())) *
                    (place_bits(full_block()) + value_bits()) / block,
            .sparse = true};
  }
  int64_t most_bytes(const Shape& shape) const override {
    const BlockGrid grid(shape, options_.side, options_.run);
    int64_t values = 0;
    for (int64_t b = 0; b < grid.count(); ++b) values += kept(grid.elements(b));
    return values == 0 ? 0 : place_bytes(grid) + (values * value_bits() + 7) / 8 + (coded() ? kTableBytes : 0);
  }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    const BlockGrid grid(gradient.shape(), options_.side, options_.run);
    const auto kept_places = choose(grid, gradient.data<float>());
    std::vector<float> values;
    for (int64_t b = 0; b < grid.count(); ++b)
      for (const uint32_t place : kept_places[static_cast<size_t>(b)])
        values.push_back(gradient.data<float>()[grid.at(b, place)]);
    check_largest(tag, values);

    std::vector<uint8_t> codes;
    if (coded()) ValueTable(values, codes).append(bytes);
    {
      BitWriter bits(bytes);
      for (int64_t b = 0; b < grid.count(); ++b)
        for (const uint32_t place : kept_places[static_cast<size_t>(b)])
          bits.write(place, place_bits(grid.elements(b)));
    }
    BitWriter bits(bytes);
    for (const uint8_t code : codes) bits.write(code, 2);
    if (!coded()) append_values<float>(bytes, values);
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    const BlockGrid grid(sum.shape(), options_.side, options_.run);
    ByteReader reader(message);
    std::optional<ValueTable> table;
    if (coded()) table.emplace(reader);
    std::vector<int64_t> elements = read_places(grid, reader);
    std::vector<float> values(elements.size());
    if (coded()) {
      BitReader bits(reader.rest());
      for (float& value : values) value = table->value(bits.read(2));
      bits.finish();
    } else {
      reader.values(std::span(values));
    }
    check(std::ranges::all_of(values, [](float value) { return std::isfinite(value); }),
          "message holds a value that is not finite");
    for (size_t i = 0; i < values.size(); ++i) sum.data<float>()[elements[i]] += values[i];
  }

 private:
  bool coded() const { return options_.coded_values; }
  int value_bits() const { return coded() ? 2 : 32; }
  int64_t full_block() const { return options_.side * options_.side; }
  static int place_bits(int64_t elements) { return std::bit_width(static_cast<uint64_t>(elements - 1)); }
  int64_t kept(int64_t elements) const {
    const int64_t share = options_.short_in_full ? options_.keep : options_.keep * elements / full_block();
    return std::clamp<int64_t>(share, 1, elements);
  }

  /// Bytes of the places of all kept elements.
  int64_t place_bytes(const BlockGrid& grid) const {
    int64_t bits = 0;
    for (int64_t b = 0; b < grid.count(); ++b) bits += kept(grid.elements(b)) * place_bits(grid.elements(b));
    return (bits + 7) / 8;
  }

  /// The places of the kept elements of each block.
  std::vector<std::vector<uint32_t>> choose(const BlockGrid& grid, const float* g) const {
    std::vector<std::vector<uint32_t>> chosen(static_cast<size_t>(grid.count()));
    parallel_for(0, grid.count(), 4, [&](int64_t begin, int64_t end) {
      std::vector<uint32_t> magnitudes;
      for (int64_t b = begin; b < end; ++b) {
        const int64_t n = grid.elements(b), width = grid.width(b);
        magnitudes.resize(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; i += width) {
          const float* const row = g + grid.at(b, i);
          std::transform(row, row + width, magnitudes.begin() + i, magnitude_bits);
        }
        chosen[static_cast<size_t>(b)] = largest(magnitudes, kept(n));
      }
    });
    return chosen;
  }
  /// The elements of the tensor that a message is about.
  std::vector<int64_t> read_places(const BlockGrid& grid, ByteReader& reader) const {
    BitReader bits(reader.take(static_cast<size_t>(place_bytes(grid))));
    std::vector<int64_t> elements;
    for (int64_t b = 0; b < grid.count(); ++b) {
      const int64_t n = grid.elements(b);
      int64_t last = -1;
      for (int64_t i = 0; i < kept(n); ++i) {
        const int64_t place = bits.read(place_bits(n));
        check(place > last && place < n, "block ", b, " keeps element ", place, " after ", last,
              ", expected rising ones below ", n);
        elements.push_back(grid.at(b, place));
        last = place;
      }
    }
    bits.finish();
    return elements;
  }

  BlockTopKOptions options_;
};

std::unique_ptr<GradientCodec> make_topk_block(CodecOptions& options) {
  constexpr int64_t kMost = 1 << 12;
  BlockTopKOptions o;
  o.keep = options.integer("keep", o.keep, 1, kMost * kMost);
  o.side = options.integer("side", o.side, 1, kMost);
  o.run = options.integer("run", o.side * o.side, 1, kMost * kMost);
  constexpr const char* kShortBlocks[] = {"share", "full"};
  o.short_in_full = options.choice("short", 0, kShortBlocks) == 1;
  constexpr const char* kValueBits[] = {"2", "32"};
  o.coded_values = options.choice("bits", 0, kValueBits) == 0;
  o.decay = options.number("decay", 0, 0, 1);
  options.finish();
  auto codec = std::make_unique<BlockTopK>(o);
  if (o.decay == 0) return codec;
  return with_built_in_feedback(std::move(codec), o.decay);
}

std::unique_ptr<GradientCodec> make_topk(CodecOptions& options) {
  const double ratio = options.number("ratio", 0.01, 1e-9, 1);
  options.finish();
  return std::make_unique<TopK>(ratio);
}

}  // namespace

constinit const CodecEntry topk_entry = {"topk", "ratio=0.01 (of the elements, rounded up)", "64·ratio",
                                         "contraction: |g - decoded|² is at most (1 - ratio)·|g|²", make_topk};

constinit const CodecEntry topk_block_entry = {
    "topk-block",
    "keep=64 (of a block of side × side), side=64 (a matrix is cut into such tiles), run=side² (a vector's blocks), "
    "short=share|full (what a shorter block keeps), bits=2|32 (of a value), decay=0 (of the residual; 0: no error "
    "feedback)",
    "keep·(log2(side²) + bits) / side²; and 160 a tensor with bits=2", "contraction; error feedback if decay is not 0",
    make_topk_block};

}  // namespace tern
