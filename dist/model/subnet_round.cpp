#include "tern/dist/model/subnet_round.h"

#include <numeric>

namespace tern {

ExchangePlan plan_subnet_round(const SubnetCuts& cuts, const StateDict& model, const StateDict& optimizer, int ranks) {
  const SubnetParts parts = draw_subnets(cuts, ranks, 0, 0);  // their widths are those of any round
  std::vector<int64_t> elements(static_cast<size_t>(ranks));
  int64_t averaged = 0, counters = 0;
  const auto count = [&](const std::string& name, const Tensor& tensor, bool of_model) {
    const TensorCut* const cut = cuts.find(name);
    for (int rank = 0; cut != nullptr && rank < ranks; ++rank)
      elements[static_cast<size_t>(rank)] += subnet_shape(*cut, tensor.shape(), parts, rank).numel();
    if (cut == nullptr && of_model) (is_floating(tensor.dtype()) ? averaged : counters) += tensor.numel();
  };
  for (const auto& [name, tensor] : model) count(name, tensor, true);
  for (const auto& [name, tensor] : optimizer) count(std::string(kOptimizerPrefix) + name, tensor, false);

  std::vector<int64_t> bytes;
  for (const int64_t n : elements) bytes.push_back(4 * n);
  const auto others = static_cast<double>(std::accumulate(elements.begin() + 1, elements.end(), int64_t{0}));
  const auto own = static_cast<double>(elements.back());
  return {{{.encoded = others, .wire = root_load(bytes), .decoded = own},
           {.encoded = own, .wire = root_load(bytes), .decoded = others},
           {.wire = all_reduce_load(4 * averaged, ranks)},
           {.wire = all_reduce_load(8 * counters, ranks)}}};
}

}  // namespace tern
