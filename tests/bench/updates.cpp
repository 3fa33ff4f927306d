#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "tern/core/parallel.h"
#include "tern/kernels/update.h"
#include "tests/bench/case.h"

namespace tern::bench {
namespace {

using kernels::ParameterUpdate;

constexpr int64_t kElements = 16 << 20;

/// One parameter with its gradient and its state.
ParameterUpdate make_update() {
  return {Tensor::full({kElements}, 1), Tensor::full({kElements}, 1e-3), Tensor::zeros({kElements}),
          Tensor::zeros({kElements}), Tensor::zeros({}, {.dtype = DType::i64})};
}

template <class Run>
void add_update(std::vector<Case>& cases, const char* name, Run run) {
  for (const int threads : kThreads)
    cases.push_back({fmt::format("update/{}/t{}", name, threads),
                     threads,
                     [=] { return [=, update = make_update()] { run(std::span(&update, 1)); }; },
                     {kElements * sizeof(float), "GB/s of one array"}});
}

}  // namespace

// Rates count the bytes of one array: the source of memcpy, the gradient of an update.
void add_updates(std::vector<Case>& cases) {
  add_update(cases, "memcpy", [](std::span<const ParameterUpdate> updates) {
    const auto* from = updates[0].g.data<float>();
    auto* to = updates[0].w.data<float>();
    parallel_for(0, kElements, 1 << 16, [=](int64_t first, int64_t last) {
      std::memcpy(to + first, from + first, static_cast<size_t>(last - first) * sizeof(float));
    });
  });
  const Tensor lr = Tensor::full({}, 1e-3, {.dtype = DType::f64}),
               decay = Tensor::full({}, 0.999, {.dtype = DType::f64});
  add_update(cases, "sgd_momentum", [=](std::span<const ParameterUpdate> updates) {
    kernels::sgd_update(updates, {.lr = lr, .momentum = 0.9});
  });
  add_update(cases, "adam",
             [=](std::span<const ParameterUpdate> updates) { kernels::adam_update(updates, {.lr = lr}); });
  add_update(cases, "average",
             [=](std::span<const ParameterUpdate> updates) { kernels::average_update(updates, decay); });
}

}  // namespace tern::bench
