#pragma once

#include <string>

#include "tern/apps/trainer/listener.h"
#include "tern/dist/comm/contract.h"
#include "tern/layers/module.h"

namespace tern {

/// What all ranks of a run must agree on: tern itself, every setting that changes the losses or what is exchanged,
/// threads, data, and the model's parameters.
Contract run_contract(const RunStart& run, Module& model, const std::string& data_fingerprint);

}  // namespace tern
