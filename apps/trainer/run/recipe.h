#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tern/core/dtype.h"
#include "tern/dist/comm/communicator.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/module.h"
#include "tern/optim/optimizer.h"
#include "tern/optim/schedule.h"
#include "tern/trainer/application.h"
#include "tern/trainer/rank/team.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// Makes the application's model for the chosen data set, with initial values from the seed or from --init. `data` is
/// one of its splits; tern's pictures do without. Throws InputError if the file of --init does not fit. With
/// --init-partial, `copied` receives what was taken from it.
std::unique_ptr<Module> make_model(const Application& application, const TrainSettings& settings,
                                   const Dataset* data = nullptr, PartialCopy* copied = nullptr);

/// The application's model for the chosen data set, without values; `data` as in make_model.
std::unique_ptr<Module> build_model(const Application& application, const TrainSettings& settings, const Dataset* data);
/// Gives the parts of a built model the values that make_model gives.
/// `prepare` is called before --init is read.
void fill_model(const TrainSettings& settings, Module& model, PartialCopy* copied = nullptr,
                const std::function<void()>& prepare = {});

/// Whether no rank holds the whole model: --ist-store sharded.
bool is_sharded(const TrainSettings& settings);
/// The cuts of a built model that is sharded. Throws InputError if it cannot be sharded.
SubnetCuts sharded_cuts(const TrainSettings& settings, Module& model);
/// Gives a built model the values of this rank's slice, from the seed or from --init.
void fill_slice(const TrainSettings& settings, Module& model, const SubnetCuts& cuts, const Team& team);

/// The dtype of activations for --precision.
DType activation_dtype(const TrainSettings& settings);

/// Makes the optimizer of the settings for all parameters of `model`, which must outlive it.
std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, Module& model);

/// The learning-rate schedule for a run of `total_steps`. Throws InputError if --warmup or --lr-steps exceed them.
Schedule make_schedule(const TrainSettings& settings, int64_t total_steps);

/// The schedules of the optimizer's groups whose rate ends before the run (--group PATTERN:until=X), by their number in
/// make_optimizer's optimizer. Throws InputError if one is longer than the run, or shorter than --warmup.
std::map<size_t, Schedule> make_group_schedules(const TrainSettings& settings, Module& model, int64_t total_steps);

/// Makes the distributed method of --method around a rank's optimizer `local`. Without a communicator, the rank trains
/// alone. Model, optimizer and communicator must outlive it. Throws InputError if the model cannot be trained by it.
/// `cuts` are those of a sharded model; otherwise null.
std::unique_ptr<DistributedOptimizer> make_method(const TrainSettings& settings, Module& model, Optimizer& local,
                                                  Communicator* communicator, const SubnetCuts* cuts = nullptr);

/// A note if a run of so many steps ends before the first exchange between ranks that train alone; otherwise empty.
std::string note_of_rounds(const TrainSettings& settings, int64_t total_steps);

/// A note if `ranks` ranks send more bytes with the codec and its exchange than as floats around a ring; otherwise
/// empty. Also empty if the size of the codes varies, or if the method takes no exchange.
std::string note_of_bytes(const TrainSettings& settings, Module& model, int ranks);

}  // namespace tern::trainer
