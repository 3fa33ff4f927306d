#include "tern/kernels/topk.h"

#include <cstring>
#include <vector>

#include "tern/kernels/largest.h"

namespace tern::kernels {

void topk_add(const uint8_t* code, int64_t kept, float factor, std::span<float> sum) {
  if (kept == 0) return;
  std::vector<uint32_t> places(static_cast<size_t>(kept));
  std::vector<float> values(places.size());
  std::memcpy(places.data(), code, 4 * places.size());
  std::memcpy(values.data(), code + 4 * kept, 4 * values.size());
  for (size_t i = 0; i < places.size(); ++i) {
    check(places[i] < sum.size() && (i == 0 || places[i] > places[i - 1]), "topk_decode_add: place ", i,
          " of a message is ", places[i], ", expected ascending ones below ", sum.size());
    check(magnitude_bits(values[i]) < kInfinityBits, "topk_decode_add: value ", i, " of a message is not finite");
  }
  for (size_t i = 0; i < places.size(); ++i) sum[places[i]] += factor * values[i];
}

}  // namespace tern::kernels
