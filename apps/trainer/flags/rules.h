#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tern/dist/comm/address.h"
#include "tern/dist/comm/launch.h"
#include "tern/dist/comm/transport.h"
#include "tern/optim/optimizer.h"
#include "tern/trainer/flags/flag_table.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// Checks ranges and conflicts of all settings. Throws InputError with the first flag that is wrong.
void validate(const TrainSettings& settings);

/// A value of --group.
struct GroupSpec {
  GroupRule group;                      ///< without its rule
  std::optional<double> lr = {};        ///< unset: that of --lr, or for adamw beside muon --adamw-lr
  std::optional<UpdateRule> rule = {};  ///< unset: that of --optimizer
  std::optional<double> until = {};     ///< where its schedule ends: a step, or below 1 a share of the run
};

/// Reads "PATTERN:NAME=X,...". The names are lr, momentum, weight-decay, rule and until. Throws InputError if the text
/// is wrong, or if the settings do not use a name.
GroupSpec parse_group(std::string_view spec, const TrainSettings& settings);

/// The reason why `flag` of `settings` has no effect; empty if it has one.
std::string reason_without_effect(const Flag& flag, const TrainSettings& settings);
/// Whether the flag of a setting has an effect: `acts(settings, &TrainSettings::overlap)`.
template <class T>
bool acts(const TrainSettings& settings, T TrainSettings::*setting) {
  bool found = false;
  visit_flags(settings, [&](const Flag& flag, const auto& field) {
    if (static_cast<const void*>(&field) == &(settings.*setting)) found = reason_without_effect(flag, settings).empty();
  });
  return found;
}

/// The place given by --rank, --world-size and --master; nullopt if none of them is given. Throws InputError if one is
/// missing or wrong.
std::optional<ClusterPlace> place_by_flags(const TrainSettings& settings);
/// The place of this rank, by flags or by the environment; nullopt if nobody started it as one. Throws InputError if
/// --transport mpi has no launcher.
std::optional<ClusterPlace> find_rank(const TrainSettings& settings);

/// Changes `settings` to those of a rank at `place`. Throws InputError with the flag if one contradicts the place.
void settle(TrainSettings& settings, const ClusterPlace& place);

/// The address of --bind HOST or HOST:PORT; the port is 0 if none is given.
Address listening_address(const TrainSettings& settings);

/// The timeouts between ranks, with --dead-after.
Deadlines rank_deadlines(const TrainSettings& settings);

}  // namespace tern::trainer
