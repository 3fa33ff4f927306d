#include "tern/kernels/topk_block.h"

#include <bit>

#include "tern/kernels/topk_block_arithmetic.h"

namespace tern::kernels {
namespace {

const TopKBlockOptions& checked(const TopKBlockOptions& options) {
  const int64_t most = int64_t{kMostTopKBlockSide} * kMostTopKBlockSide;
  check(options.keep >= 1 && options.keep <= most && options.side >= 1 && options.side <= kMostTopKBlockSide &&
            options.run >= 1 && options.run <= most,
        "topk_block: keep is ", options.keep, ", side ", options.side, ", run ", options.run, ", expected 1 to ", most,
        ", 1 to ", kMostTopKBlockSide, ", 1 to ", most);
  return options;
}

void check_gradient(const char* operation, const Tensor& g) {
  check(g.dtype() == DType::f32 && g.format() == MemoryFormat::row_major, operation, ": gradient is ", g.dtype(), ", ",
        g.format(), ", expected f32, row_major");
}

/// Reads fields of bits that follow each other, the highest bit of each first.
class FieldReader {
 public:
  FieldReader(const uint8_t* bytes, int64_t first) : next_(bytes + first / 8) { read(static_cast<int>(first % 8)); }
  /// `count` is at most 24.
  uint32_t read(int count) {
    for (; count_ < count; count_ += 8) waiting_ = waiting_ << 8 | *next_++;
    count_ -= count;
    return static_cast<uint32_t>(waiting_ >> count_) & ((1u << count) - 1);
  }

 private:
  const uint8_t* next_;
  uint64_t waiting_ = 0;  // its lowest `count_` bits are not read yet
  int count_ = 0;
};

/// The table that a code begins with, if its values are coded.
ValueTable table_of(const TopKBlockLayout& layout, const uint8_t* code) {
  ValueTable table;
  if (layout.coded_values) std::memcpy(&table, code, sizeof table);
  return table;
}

}  // namespace

TopKBlockLayout::TopKBlockLayout(const Shape& shape, const TopKBlockOptions& options)
    : grid(shape, checked(options).side, options.run), coded_values(options.coded_values), last_(grid.count() - 1) {
  if (last_ < 0) return;
  const auto share = [&](int64_t elements) {
    const int64_t part = options.keep * elements / (options.side * options.side);
    return std::clamp<int64_t>(options.short_in_full ? options.keep : part, 1, elements);
  };
  const auto bits_for = [](int64_t elements) { return std::bit_width(static_cast<uint64_t>(elements - 1)); };
  kept_ = share(grid.elements(0));
  kept_in_last_ = share(grid.elements(last_));
  bits_ = bits_for(grid.elements(0));
  bits_in_last_ = bits_for(grid.elements(last_));
}

void check_topk_block_encode(const Tensor& g, const TopKBlockLayout& layout, const Tensor& codes,
                             const Tensor& broken) {
  const char* const operation = "topk_block_encode";
  check_gradient(operation, g);
  const Shape expected = {layout.bytes()};
  check(codes.dtype() == DType::u8 && codes.shape() == expected && codes.device() == g.device(), operation,
        ": codes are ", codes.dtype(), " ", codes.shape(), " on ", codes.device(), ", expected u8 ", expected, " on ",
        g.device());
  check(broken.dtype() == DType::f32 && broken.numel() == 1 && broken.device() == g.device(), operation, ": broken is ",
        broken.dtype(), " ", broken.shape(), " on ", broken.device(), ", expected f32 [1] on ", g.device());
}

void check_topk_block_decode(const Tensor& messages, int64_t codes_at, const TopKBlockLayout& layout,
                             const Tensor& total) {
  const char* const operation = "topk_block";
  check_gradient(operation, total);
  check(messages.dtype() == DType::u8 && messages.rank() == 2 && messages.device() == total.device() && codes_at >= 0 &&
            messages.size(1) >= codes_at + layout.bytes(),
        operation, ": messages are ", messages.dtype(), " ", messages.shape(), " on ", messages.device(),
        ", expected u8 [messages, bytes] on ", total.device(), " with ", layout.bytes(), " bytes from ", codes_at,
        " on");
}

void check_topk_block_code(const TopKBlockLayout& layout, const uint8_t* code) {
  if (layout.kept() == 0) return;
  const char* const operation = "topk_block";
  check(table_of(layout, code).is_finite(), operation, ": a message has a table that is not finite");
  const auto check_rest = [&](int64_t begin, int64_t end, int64_t bits, const char* of) {
    const auto unused = static_cast<int>(8 * (end - begin) - bits);
    check(unused == 0 || (code[end - 1] & ((1u << unused) - 1)) == 0, operation, ": a message has ", unused,
          " bits after its ", of, " that are not all 0");
  };
  const int64_t last = layout.grid.count() - 1;
  check_rest(layout.places_at(), layout.values_at(),
             layout.places_begin(last) + layout.kept(last) * layout.place_bits(last), "places");
  if (layout.coded_values) check_rest(layout.values_at(), layout.bytes(), 2 * layout.kept(), "values");
}

void topk_block_add(const TopKBlockLayout& layout, const uint8_t* code, int64_t block, float factor, float* y,
                    float* senders) {
  const char* const operation = "topk_block";
  const ValueTable table = table_of(layout, code);
  const BlockGrid& grid = layout.grid;
  const int64_t elements = grid.elements(block), kept = layout.kept(block), number = layout.kept_before(block);
  const int bits = layout.place_bits(block);
  const auto width = static_cast<uint32_t>(grid.width(block));
  float* const begin = y + grid.at(block, 0);
  const uint8_t* const floats = code + layout.values_at() + 4 * number;
  FieldReader places(code + layout.places_at(), layout.places_begin(block));
  FieldReader value_codes(code + layout.values_at(), layout.coded_values ? 2 * number : 0);
  constexpr int64_t kSome = 64;
  int64_t last = -1, at[kSome];
  float values[kSome];
  for (int64_t first = 0; first < kept; first += kSome) {
    const int64_t count = std::min(kSome, kept - first);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t place = places.read(bits);
      float value = 0;
      if (layout.coded_values)
        value = table.value(value_codes.read(2));
      else
        std::memcpy(&value, floats + 4 * (first + i), sizeof value);
      check(place > last && place < elements, operation, ": block ", block, " of a message keeps element ", place,
            " after ", last, ", expected rising ones below ", elements);
      check(magnitude_bits(value) < kInfinityBits, operation, ": a message holds a value that is not finite");
      at[i] = place / width * grid.columns + place % width;
      values[i] = factor * value;
      last = place;
      if (senders != nullptr) senders[place] += value != 0 ? 1.0f : 0.0f;
    }
    // Additions of their own, because many of them can then wait for memory at the same time.
    for (int64_t i = 0; i < count; ++i) begin[at[i]] += values[i];
  }
}

}  // namespace tern::kernels
