#pragma once

#include <string>
#include <vector>

#include "tern/apps/advise/forecast.h"
#include "tern/apps/advise/options.h"
#include "tern/networks/networks.h"

namespace tern::advise {

/// A number of workers in the extrapolation, each with as many images as now: floats by the ring, and the fastest
/// codes that are averaged in every step.
struct ScalePoint {
  int workers = 0;
  Forecast floats = {}, codes = {};
};

/// What `advise` says; `measured` is that of each pass. `forecasts` are from the fastest on, floats and codes of
/// data-parallel training among them.
std::string advice_page(const networks::Variant& variant, const AdviceOptions& options,
                        const std::vector<Measured>& measured, const std::vector<Forecast>& forecasts,
                        const std::vector<ScalePoint>& scale);

/// The command that trains this way.
std::string training_command(const networks::Variant& variant, const AdviceOptions& options, const Way& way);

}  // namespace tern::advise
