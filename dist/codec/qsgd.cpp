#include <algorithm>
#include <cmath>

#include "tern/core/error.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/levels.h"
#include "tern/dist/codec/spec.h"
#include "tern/dist/comm/bytes.h"
#include "tern/kernels/codec_arithmetic.h"

namespace tern {
namespace {

constexpr const char* kNorms[] = {"l2", "max"};
constexpr const char* kCodes[] = {"fixed", "elias", "entropy"};
constexpr const char* kAligns[] = {"none", "field"};
constexpr Packing kCodePackings[] = {Packing::fixed, Packing::elias, Packing::entropy};

/// One of the `bits` is the sign.
int64_t levels_of(int64_t bits) { return (int64_t{1} << (bits - 1)) - 1; }

struct QsgdSettings {
  int64_t levels = 7, bucket = 512;
  int norm = static_cast<int>(kernels::BucketNorm::max), code = 0;
  bool by_fields = false;
};

/// QSGD (Alistarh et al., 2017, eq. 4 and section 4). Each bucket becomes whole numbers of the unit norm / levels,
/// rounded at random. A message holds the units of the buckets, then the codes.
class Qsgd final : public GradientCodec, public ScaledCodec, public PlanesCodec {
 public:
  explicit Qsgd(const QsgdSettings& settings)
      : PlanesCodec({settings.bucket, settings.levels, settings.by_fields}, kCodePackings[settings.code]),
        settings_(settings) {}

  std::string spec() const override {
    const int64_t levels = settings_.levels;
    const int bits = kernels::code_bits(levels);
    const bool by_bits = levels == levels_of(bits);
    return join({"qsgd:", by_bits ? "bits=" : "levels=", by_bits ? bits : levels, ",bucket=", settings_.bucket,
                 ",norm=", kNorms[settings_.norm], ",code=", kCodes[settings_.code],
                 ",align=", kAligns[settings_.by_fields]});
  }
  CodecTraits traits() const override {
    return {.bits = static_cast<double>(kernels::code_bits(settings_.levels)), .fixed_size = is_fixed_size(packing_)};
  }
  int64_t most_bytes(const Shape& shape) const override {
    const int64_t n = shape.numel();
    return n == 0 ? 0 : 4 * kernels::bucket_count(n, planes_.bucket_of(shape)) + code_bytes(n);
  }

  /// With l2: Lemma 3.1 (ii) for the bucket length. With max: the variance of this gradient itself, because the lemma
  /// does not cover max. The ω of the worst gradient, (√(1 + (bucket - 1) / levels²) - 1) / 2, is far above that of
  /// usual gradients.
  double omega(const GradientTag& tag, const Tensor& gradient) const override {
    if (norm() == kernels::BucketNorm::max) return relative_variance(scalers(tag, gradient), gradient);
    const auto n = static_cast<double>(gradient.numel());
    const int64_t width = planes_.bucket_of(gradient.shape());
    const double length = width == 0 ? n : std::min(n, static_cast<double>(width));
    const auto s = static_cast<double>(settings_.levels);
    return std::min(length / (s * s), std::sqrt(length) / s);
  }

  /// Codes of several tensors are cut, summed and fused by one bucket for all of them, so not if fields set it.
  const ScaledCodec* scaled() const override { return settings_.by_fields ? nullptr : this; }
  MessageCodec* messages() override { return is_fixed_size(packing_) ? this : nullptr; }
  PartsCodec* parts() override { return is_fixed_size(packing_) ? nullptr : this; }
  Tensor scalers(const GradientTag& tag, const Tensor& gradient) const override {
    return planes_.units({{tag, gradient}}, rule(), watch_);
  }
  void append_codes(const GradientTag& tag, const Tensor& gradient, const Tensor& units,
                    std::vector<std::byte>& bytes) const override {
    const kernels::CodedGradient coded = {gradient, units, empty_codes(gradient.numel()), tag.key};
    kernels::quantize({&coded, 1}, settings_.bucket, settings_.levels);
    append_packed(packing_, coded.codes, gradient.numel(), settings_.levels, bytes);
  }
  void add_codes(std::span<const std::byte> codes, const Tensor& units, Tensor& sum) const override {
    add_packed(packing_, codes, units, settings_.bucket, settings_.levels, sum);
  }
  Tensor scalers(const FusedGradients& message) override { return planes_.units(message, rule(), watch_); }
  void confirm(int64_t steps) const override { watch_.confirm(steps); }
  bool can_be_recorded() const override { return is_fixed_size(packing_); }
  ScalerSharing sharing() const override { return ScalerSharing::off; }
  int64_t bucket() const override { return settings_.bucket; }
  int64_t levels() const override { return settings_.levels; }
  int64_t code_bytes(int64_t n) const override { return most_packed_bytes(packing_, n, settings_.levels); }
  int64_t granule() const override { return packing_granule(packing_); }
  std::unique_ptr<GradientCodec> for_sums() const override {
    QsgdSettings by_maximum = settings_;
    by_maximum.norm = static_cast<int>(kernels::BucketNorm::max);
    return std::make_unique<Qsgd>(by_maximum);
  }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    const int64_t n = gradient.numel(), levels = settings_.levels, width = planes_.bucket_of(gradient.shape());
    const kernels::CodedGradient coded = {gradient, Tensor::empty({kernels::bucket_count(n, width)}), empty_codes(n),
                                          tag.key};
    kernels::norm_quantize({&coded, 1}, norm(), width, levels);
    check_finite(tag, coded.units.span<float>());
    append_values<float>(bytes, coded.units.span<float>());
    append_packed(packing_, coded.codes, n, levels, bytes);
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    ByteReader reader(message);
    const int64_t width = planes_.bucket_of(sum.shape());
    const Tensor units = Tensor::empty({kernels::bucket_count(sum.numel(), width)});
    reader.values(units.span<float>());
    check_scalers(units.span<float>());
    add_packed(packing_, reader.rest(), units, width, settings_.levels, sum);
  }

 private:
  Tensor encode_planes(const FusedGradients& message, const Tensor& shared) override {
    return shared.defined() ? planes_.encode(message, shared) : planes_.encode(message, rule(), watch_);
  }
  kernels::BucketNorm norm() const { return static_cast<kernels::BucketNorm>(settings_.norm); }
  kernels::UnitRule rule() const { return {norm(), settings_.levels}; }
  /// Σ unit²·f(1 - f) / |g|², with f the fraction of |g| / unit (eq. 4).
  double relative_variance(const Tensor& units, const Tensor& gradient) const {
    auto rest = gradient.span<float>();
    const int64_t elements = planes_.bucket_of(gradient.shape());
    const size_t width = elements == 0 ? rest.size() : static_cast<size_t>(elements);
    double variance = 0, squares = 0;
    for (const double unit : units.span<float>()) {
      const auto bucket = rest.first(std::min(width, rest.size()));
      rest = rest.subspan(bucket.size());
      if (unit == 0) continue;
      double sum = 0;
      for (const double x : bucket) {
        const double scaled = std::abs(x) / unit, fraction = scaled - static_cast<double>(static_cast<int32_t>(scaled));
        sum += fraction * (1 - fraction);
        squares += x * x;
      }
      variance += unit * unit * sum;
    }
    return squares == 0 ? 0 : variance / squares;
  }
  Tensor empty_codes(int64_t n) const {
    return Tensor::empty({kernels::code_bytes(n, kernels::code_bits(settings_.levels))}, {.dtype = DType::u8});
  }

  QsgdSettings settings_;
};

std::unique_ptr<GradientCodec> make_qsgd(SpecParameters& options) {
  QsgdSettings settings;
  check_input(!options.has("bits") || !options.has("levels"),
              "codec qsgd: bits and levels are two ways to say one thing; "
              "expected one of them");
  const int64_t bits = options.integer("bits", 4, 2, 16);
  settings.levels = options.integer("levels", levels_of(bits), 1, kernels::kMostLevels);
  settings.bucket = options.integer("bucket", settings.bucket, 0, int64_t{1} << 40);
  settings.code = options.choice("code", settings.code, kCodes);
  // Fixed codes gain nothing from l2's many zeros, and max leaves a far smaller error. Section 4 uses max as well.
  const bool is_fixed = kCodePackings[settings.code] == Packing::fixed;
  settings.norm =
      options.choice("norm", static_cast<int>(is_fixed ? kernels::BucketNorm::max : kernels::BucketNorm::l2), kNorms);
  settings.by_fields = options.choice("align", 0, kAligns) == 1;
  options.finish();
  check_input(!settings.by_fields || settings.bucket > 0,
              "codec qsgd: align=field with bucket=0, which is the whole tensor; expected a bucket of 1 or more");
  return std::make_unique<Qsgd>(settings);
}

}  // namespace

constinit const CodecEntry qsgd_entry = {
    "qsgd",
    "bits=4 (2 to 16, the sign inside: levels = 2^(bits-1) - 1) or levels=7 (to 32767)\n"
    "              bucket=512 (elements a norm; 0: a tensor)  code=fixed|elias|entropy\n"
    "              norm=max|l2 (max with code=fixed, otherwise l2)\n"
    "              align=none|field (a bucket has whole receptive fields, as many as fit, at least one)",
    "bits; elias and entropy less, by the gradient (4 bits, 512, l2: about 1.1 with entropy); and 32 a bucket",
    "unbiased; variance at most min(bucket/levels², √bucket/levels)·|g|² with l2 (Lemma 3.1),\n"
    "              (√(1 + bucket/levels²) - 1)/2·|g|² with max",
    make_qsgd};

}  // namespace tern
