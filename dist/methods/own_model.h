#pragma once

#include <string>
#include <vector>

#include "tern/autograd/parameter.h"
#include "tern/core/state_dict.h"
#include "tern/dist/comm/communicator.h"
#include "tern/layers/module.h"

namespace tern {

/// The values of a model that each rank trains on its own: its trained parameters, then its floating-point buffers.
/// While the model shows the mean over the ranks, for an evaluation, the rank's own values are kept here. Does not own
/// the model. Used by one thread.
class OwnModel {
 public:
  explicit OwnModel(Module& model);

  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  const std::vector<NamedBuffer>& buffers() const { return buffers_; }
  /// The name of value i.
  const std::string& name(size_t i) const;
  /// All values. They share storage with the model.
  std::vector<Tensor> values() const;

  /// Makes the model the mean of all ranks' models, exactly (f32). The bytes count as overhead. Adds the seconds of
  /// waiting to `wait`. Does nothing if the model shows the mean already.
  void show_mean(Communicator& communicator, double& wait);
  /// Makes the model the rank's own again.
  void take_back();
  bool shows_mean() const { return !own_.empty(); }

  /// The rank's own values, with `prefix` before their names, while the model shows the mean; otherwise nothing. Shares
  /// storage with this object.
  void add_to(StateDict& state, std::string_view prefix) const;
  /// Makes room for own values, to copy a state into. Without `shown`, there are none.
  void prepare_load(bool shown);

 private:
  void install(const std::vector<Tensor>& values);

  std::vector<NamedParameter> parameters_;
  std::vector<NamedBuffer> buffers_;
  std::vector<Tensor> own_;  ///< empty unless the model shows the mean
};

}  // namespace tern
