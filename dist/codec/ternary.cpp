#include <algorithm>
#include <cmath>
#include <string_view>

#include "tern/core/error.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/levels.h"
#include "tern/dist/codec/spec.h"
#include "tern/dist/comm/bytes.h"
#include "tern/kernels/codec.h"

namespace tern {
namespace {

/// What a gradient is clipped to. `paper`: the scaler that codes it, min(max|g|, clip·σ). `reference`: the same, with
/// the scaler clip·σ. `own`: min(max|g|, clip·σ) of its own rank, even if ranks share a larger scaler.
enum class ClipMode : uint8_t { paper, reference, own };
constexpr const char* kModes[] = {"paper", "reference", "own"};
constexpr const char* kShares[] = {"auto", "on", "off"};
constexpr const char* kPacks[] = {"2bit", "5trit", "entropy"};
constexpr Packing kTernaryPackings[] = {Packing::fixed, Packing::trits, Packing::entropy};

struct TernarySettings {
  double clip = 2.5;
  ClipMode mode = ClipMode::paper;
  int share = 0, pack = 0;
  int64_t bucket = 0;
};

/// TernGrad (Wen et al., 2017, eq. 1-4 and 21): sends -1, 0 or 1 times a scaler S. A code is ±1 with probability |g|/S.
/// A message holds the scalers, then the codes.
class Ternary final : public GradientCodec, public ScaledCodec, public PlanesCodec {
 public:
  explicit Ternary(const TernarySettings& settings)
      : PlanesCodec({settings.bucket, 1}, kTernaryPackings[settings.pack]), settings_(settings) {}

  std::string spec() const override {
    return join({"ternary:clip=", settings_.clip, ",clip-mode=", kModes[static_cast<int>(settings_.mode)],
                 ",share=", kShares[settings_.share], ",bucket=", settings_.bucket, ",pack=", kPacks[settings_.pack]});
  }
  CodecTraits traits() const override {
    return {.bits = packing_ == Packing::trits ? 1.6 : 2, .fixed_size = is_fixed_size(packing_)};
  }
  int64_t most_bytes(const Shape& shape) const override {
    const int64_t n = shape.numel();
    return n == 0 ? 0 : 4 * kernels::bucket_count(n, settings_.bucket) + code_bytes(n);
  }

  const ScaledCodec* scaled() const override { return this; }
  MessageCodec* messages() override { return is_fixed_size(packing_) ? this : nullptr; }
  PartsCodec* parts() override { return is_fixed_size(packing_) ? nullptr : this; }
  ScalerSharing sharing() const override { return static_cast<ScalerSharing>(settings_.share); }
  int64_t bucket() const override { return settings_.bucket; }
  int64_t levels() const override { return 1; }
  int64_t code_bytes(int64_t n) const override { return most_packed_bytes(packing_, n, 1); }
  int64_t granule() const override { return packing_granule(packing_); }
  std::unique_ptr<GradientCodec> for_sums() const override {
    TernarySettings unclipped = settings_;
    unclipped.clip = 0;
    return std::make_unique<Ternary>(unclipped);
  }

  Tensor scalers(const GradientTag& tag, const Tensor& gradient) const override {
    return scalers_of({{tag, gradient}});
  }
  void append_codes(const GradientTag& tag, const Tensor& gradient, const Tensor& scalers,
                    std::vector<std::byte>& bytes) const override {
    append_codes(tag, gradient, scalers, clips({{tag, gradient}}), bytes);
  }
  void add_codes(std::span<const std::byte> codes, const Tensor& scalers, Tensor& sum) const override {
    add_packed(packing_, codes, scalers, settings_.bucket, 1, sum);
  }

  Tensor scalers(const FusedGradients& message) override { return scalers_of(message); }
  void confirm(int64_t steps) const override { watch_.confirm(steps); }
  bool can_be_recorded() const override { return is_fixed_size(packing_); }

  /// Uses E‖decoded‖² = S‖c‖₁ for the clipped gradient c (appendix A, eq. 25).
  double omega(const GradientTag& tag, const Tensor& gradient) const override {
    const Tensor scaler = scalers(tag, gradient);
    const auto g = gradient.span<float>(), s = scaler.span<float>();
    const size_t width = settings_.bucket == 0 ? g.size() : static_cast<size_t>(settings_.bucket);
    double second_moment = 0, squares = 0;
    for (size_t i = 0; i < g.size(); ++i) {
      const double limit = s[i / width], clipped = std::min<double>(std::abs(g[i]), limit);
      second_moment += limit * clipped;
      squares += clipped * clipped;
    }
    return squares == 0 ? 0 : second_moment / squares - 1;
  }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    const Tensor scaler = scalers(tag, gradient);
    append_values<float>(bytes, scaler.span<float>());
    append_codes(tag, gradient, scaler, {}, bytes);
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    ByteReader reader(message);
    const Tensor scaler = Tensor::empty({kernels::bucket_count(sum.numel(), settings_.bucket)});
    reader.values(scaler.span<float>());
    check_scalers(scaler.span<float>());
    add_codes(reader.rest(), scaler, sum);
  }

 private:
  Tensor encode_planes(const FusedGradients& message, const Tensor& shared) override {
    if (!shared.defined()) return planes_.encode(message, rule(), watch_);
    return planes_.encode(message, shared, clips(message));
  }
  /// The rank's own limits, if scalers may be other ranks'; otherwise undefined, because scalers clip too.
  Tensor clips(const FusedGradients& message) const {
    return settings_.mode == ClipMode::own ? scalers_of(message) : Tensor();
  }
  void append_codes(const GradientTag& tag, const Tensor& gradient, const Tensor& scalers, const Tensor& clips,
                    std::vector<std::byte>& bytes) const {
    const kernels::CodedGradient coded = {
        gradient, scalers, Tensor::empty({kernels::code_bytes(gradient.numel(), 2)}, {.dtype = DType::u8}), tag.key,
        clips};
    kernels::quantize({&coded, 1}, settings_.bucket, 1);
    append_packed(packing_, coded.codes, gradient.numel(), 1, bytes);
  }
  kernels::UnitRule rule() const {
    using kernels::BucketNorm;
    const BucketNorm clipped = settings_.mode == ClipMode::reference ? BucketNorm::deviations : BucketNorm::clipped;
    return {settings_.clip == 0 ? BucketNorm::max : clipped, 1, settings_.clip};
  }
  Tensor scalers_of(const FusedGradients& message) const { return planes_.units(message, rule(), watch_); }

  TernarySettings settings_;
};

std::unique_ptr<GradientCodec> make_ternary(SpecParameters& options) {
  TernarySettings settings;
  settings.clip = options.number("clip", settings.clip, 0, 1e6);
  settings.mode = static_cast<ClipMode>(options.choice("clip-mode", 0, kModes));
  settings.share = options.choice("share", settings.share, kShares);
  settings.bucket = options.integer("bucket", settings.bucket, 0, int64_t{1} << 40);
  settings.pack = options.choice("pack", settings.pack, kPacks);
  options.finish();
  check_input(settings.clip != 0 || settings.mode == ClipMode::paper,
              "codec ternary: clip-mode=", kModes[static_cast<size_t>(settings.mode)],
              " would change nothing: clip=0 does not clip");
  if (settings.mode == ClipMode::own) {
    check_input(kShares[settings.share] != std::string_view("off"),
                "codec ternary: clip-mode=own would change nothing: with share=off each rank has its own limit anyway");
    settings.share = static_cast<int>(ScalerSharing::on);  // also if the exchange does not need it
  }
  return std::make_unique<Ternary>(settings);
}

}  // namespace

constinit const CodecEntry ternary_entry = {
    "ternary",
    "clip=2.5 (standard deviations; 0: none)  clip-mode=paper|reference|own (paper: S = min(max|g|, clip·σ);\n"
    "              reference: S = clip·σ; own: as paper, but with share=on each rank clips at its own S first)\n"
    "              share=auto|on|off (one scaler for all ranks)  bucket=0 (elements a scaler; 0: a tensor)\n"
    "              pack=2bit|5trit|entropy",
    "2 | 1.6 | about 1.2 for Gaussian gradients; and 32 a scaler", "unbiased for the clipped gradient", make_ternary};

}  // namespace tern
