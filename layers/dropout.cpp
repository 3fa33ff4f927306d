#include "tern/layers/dropout.h"

#include "tern/autograd/functional.h"
#include "tern/core/error.h"

namespace tern {

void Dropout::on_step(const StepContext& context, uint32_t number) {
  context_ = context;
  number_ = number;
  calls_ = 0;
}

Variable Dropout::forward(const Variable& x) {
  if (!training()) return x;
  check(context_.samples.defined(), "Dropout: call begin_step on the model before a forward in training");
  // Step, sample and layer fill the counter, so a later call has another key. The first has the seed itself.
  const uint64_t key = context_.seed + (uint64_t{calls_++} << 32);
  return dropout(x, context_.samples,
                 {.seed = key, .step = context_.step, .layer = number_, .probability = probability_});
}

}  // namespace tern
