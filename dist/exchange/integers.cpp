#include "tern/dist/exchange/integers.h"

#include <algorithm>

#include "tern/kernels/codec.h"

namespace tern {

bool sums_integers(const GradientCodec& codec) {
  return codec.scaled() != nullptr && codec.scaled()->sharing() != ScalerSharing::off;
}

void add_integers(const GradientCodec& codec, const FusedGradients& message, const CodedMessage& coded,
                  FlatTensors& sums) {
  FlatTensors ones;
  int64_t count = 0;
  for (const auto& [tag, gradient] : message) {
    ones.parts.push_back(Tensor::full({kernels::bucket_count(gradient.numel(), codec.scaled()->bucket())}, 1));
    count += ones.parts.back().numel();
  }
  ones.whole = Tensor::full({count}, 1);
  decode_add_all(codec, message, ones, coded, sums);
}

int64_t packed_integer_bytes(int64_t count, int64_t most) {
  return kernels::code_bytes(count, kernels::code_bits(most));
}

Tensor pack_integers(const Tensor& x, int64_t most) {
  Tensor packed = Tensor::empty({packed_integer_bytes(x.numel(), most)}, {.dtype = DType::u8});
  // A whole number of units is its own rounding, whatever is drawn.
  const kernels::CodedGradient coded = {x, Tensor::full({kernels::bucket_count(x.numel(), 0)}, 1), packed, {}};
  kernels::quantize({&coded, 1}, 0, most);
  return packed;
}

void add_packed_integers(const Tensor& packed, int64_t most, Tensor& sum) {
  const kernels::DecodedGradient decoded = {sum};
  kernels::dequantize_add({&decoded, 1}, packed.reshape({1, packed.numel()}),
                          Tensor::full({kernels::bucket_count(sum.numel(), 0)}, 1), 0, most);
}

std::vector<Tensor> means_of_integers(const ScaledCodec& codec, const std::vector<Tensor>& scalers, FlatTensors sums,
                                      int ranks) {
  for (size_t i = 0; i < sums.parts.size(); ++i) {
    const auto x = sums.parts[i].span<float>();
    const auto width = codec.bucket() == 0 ? x.size() : static_cast<size_t>(codec.bucket());
    for (size_t begin = 0, b = 0; begin < x.size(); begin += width, ++b) {
      const float scaler = scalers[i].data<float>()[b];
      for (float& value : x.subspan(begin, std::min(width, x.size() - begin))) value *= scaler;
    }
  }
  return means(std::move(sums), ranks);
}

}  // namespace tern
