#include "tern/dist/distributed_optimizer.h"

namespace tern {

void DistributedOptimizer::load_state(const StateDict& state, int64_t /*steps*/) {
  copy_state(state, this->state(), "the method");
}

}  // namespace tern
