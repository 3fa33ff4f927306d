#pragma once

#include <string>
#include <vector>

#include "tern/apps/advise/forecast.h"
#include "tern/apps/advise/options.h"
#include "tern/networks/networks.h"

namespace tern::advise {

/// A row of the extrapolation: a number of workers, each with as many images as now. Has the fastest forecast with
/// floats and the fastest with codes, among the ways that average gradients in every step.
struct ScalePoint {
  int workers = 0;
  Forecast floats = {}, codes = {};
};

/// The text that `advise` prints. `measured` has one entry per pass. `forecasts` are sorted from the fastest on, and
/// must include data-parallel training with floats and with codes.
std::string advice_page(const networks::Variant& variant, const AdviceOptions& options,
                        const std::vector<Measured>& measured, const std::vector<Forecast>& forecasts,
                        const std::vector<ScalePoint>& scale);

/// The command that trains in this way.
std::string training_command(const networks::Variant& variant, const AdviceOptions& options, const Way& way);

}  // namespace tern::advise
