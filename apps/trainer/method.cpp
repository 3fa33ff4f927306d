#include "tern/apps/trainer/method.h"

#include "tern/dist/data_parallel.h"

namespace tern {
namespace {

AveragingOptions averaging_options(const TrainSettings& s) {
  return {.codec = s.codec,
          .exchange = s.exchange,
          .fusion = {.min_compress = s.min_compress, .keep_float = s.keep_float},
          .seed = static_cast<uint64_t>(s.seed),
          .overlap = s.overlap};
}

}  // namespace

std::unique_ptr<DistributedOptimizer> make_method(const TrainSettings& s, Module& model, Optimizer& local,
                                                  Communicator* communicator) {
  if (!communicator) return std::make_unique<DistributedOptimizer>(model, local);
  return std::make_unique<DataParallel>(
      model, local, *communicator,
      DataParallel::Options{.averaging = averaging_options(s),
                            .weight_decay_in_gradient = s.weight_decay_in_gradient ? s.weight_decay : 0,
                            .check_every = s.check_every});
}

}  // namespace tern
