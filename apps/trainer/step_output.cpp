#include "tern/apps/trainer/step_output.h"

#include <utility>

namespace tern {

StepOutputs::StepOutputs(Device device) {
  if (device.type == DeviceType::cpu) return;
  for (auto& [loss, logits] : readbacks_) {
    loss = make_readback(device);
    logits = make_readback(device);
  }
}

StepOutputs::Arrival StepOutputs::bring(const StepOutput& output) {
  Readbacks& to = readbacks_[std::exchange(turn_, 1 - turn_)];
  if (!to.loss) return [output] { return output; };
  to.loss->start(output.loss);
  to.logits->start(output.logits);
  return [&to] { return StepOutput{to.loss->wait(), to.logits->wait()}; };
}

}  // namespace tern
