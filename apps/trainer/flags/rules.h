#pragma once

#include <optional>
#include <string>

#include "tern/dist/comm/address.h"
#include "tern/dist/comm/launch.h"
#include "tern/dist/comm/transport.h"
#include "tern/trainer/flags/flag_table.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// Throws an InputError that names the first flag out of its range or at odds with another.
void validate(const TrainSettings& settings);

/// Why `flag`, one of `settings`, would change nothing beside the others; empty where it acts.
std::string reason_without_effect(const Flag& flag, const TrainSettings& settings);
/// Whether the flag of a setting acts: `acts(settings, &TrainSettings::overlap)`.
template <class T>
bool acts(const TrainSettings& settings, T TrainSettings::*setting) {
  bool found = false;
  visit_flags(settings, [&](const Flag& flag, const auto& field) {
    if (static_cast<const void*>(&field) == &(settings.*setting)) found = reason_without_effect(flag, settings).empty();
  });
  return found;
}

/// The place that --rank, --world-size and --master name together; nothing if none of them is given.
std::optional<ClusterPlace> place_by_flags(const TrainSettings& settings);

/// Makes `settings` those of a rank in `place`; an InputError names a flag that contradicts it.
void settle(TrainSettings& settings, const ClusterPlace& place);

/// Of --bind HOST or HOST:PORT; port 0 where none is given.
Address listening_address(const TrainSettings& settings);

/// With --dead-after.
Deadlines rank_deadlines(const TrainSettings& settings);

}  // namespace tern::trainer
