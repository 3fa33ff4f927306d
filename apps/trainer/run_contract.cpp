#include "tern/apps/trainer/run_contract.h"

#include <fmt/format.h>

#include "tern/apps/trainer/flag_value.h"
#include "tern/apps/trainer/machine.h"
#include "tern/apps/trainer/run_checkpoint.h"
#include "tern/core/crc32c.h"

namespace tern {
namespace {

std::string checksum(Module& model) {
  uint32_t crc = 0;
  for (const auto& [name, tensor] : model.state())
    crc = crc32c({static_cast<const std::byte*>(tensor.raw_data()), tensor.bytes()}, crc);
  return fmt::format("{:08x}", crc);
}

}  // namespace

Contract run_contract(const RunStart& run, Module& model, const std::string& data_fingerprint) {
  const TrainSettings& s = run.settings;
  Contract contract = {versions().front()};
  for (const auto& [name, value] : run_identity(run))
    contract.emplace_back(name.starts_with("--") ? name.substr(2) : name, value);
  contract.emplace_back("total steps", std::to_string(run.total_steps));
  contract.emplace_back("first step", std::to_string(run.first_step));
  contract.emplace_back("threads", write_value(s.threads));
  // Ranks meet at each of these.
  contract.emplace_back("check-every", write_value(s.check_every));
  contract.emplace_back("checkpoint", write_value(!s.checkpoint.empty()));
  contract.emplace_back("checkpoint-every", write_value(s.checkpoint_every));
  // Each evaluates its share of the images, with the model that they make.
  contract.emplace_back("ist-eval", s.ist_eval);
  contract.emplace_back("calibrate-batches", write_value(s.calibrate_batches));
  contract.emplace_back("training data", data_fingerprint);
  for (const auto& [name, parameter] : model.parameters())
    contract.emplace_back(name, join({parameter->value().shape(), " ", parameter->value().dtype()}));
  if (run.first_step == 0) contract.emplace_back("first values", checksum(model));
  return contract;
}

}  // namespace tern
