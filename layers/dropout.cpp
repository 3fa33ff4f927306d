#include "tern/layers/dropout.h"

#include "tern/autograd/functional.h"
#include "tern/core/error.h"

namespace tern {

void Dropout::on_step(const StepContext& context, uint32_t number) {
  context_ = context;
  number_ = number;
}

Variable Dropout::forward(const Variable& x) {
  if (!training()) return x;
  check(context_.samples.defined(), "Dropout: call begin_step on the model before a forward in training");
  return dropout(x, context_.samples,
                 {.seed = context_.seed, .step = context_.step, .layer = number_, .probability = probability_});
}

}  // namespace tern
