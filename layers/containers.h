#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "tern/layers/module.h"

namespace tern {

/// Layers that run one after another. Their names are "0", "1", ..., as in torch.nn.Sequential. Without layers, it
/// returns x.
class Sequential final : public Layer {
 public:
  struct Options {};
  explicit Sequential(const Options& = {}) {}

  /// Appends a layer. Returns this object, so that calls chain.
  template <std::derived_from<Layer> L>
  Sequential& append() {
    layers_.push_back(&add<L>(std::to_string(layers_.size())));
    return *this;
  }
  template <std::derived_from<Layer> L>
  Sequential& append(const typename L::Options& options) {
    layers_.push_back(&add<L>(std::to_string(layers_.size()), options));
    return *this;
  }
  Variable forward(const Variable& x) override;

  bool empty() const { return layers_.empty(); }

 private:
  std::vector<Layer*> layers_;
};

/// body(x) + shortcut(x), then max(·, 0) with `relu` (He et al., 2016). A shortcut without layers is the identity.
class Residual final : public Layer {
 public:
  struct Options {
    bool relu = true;
  };
  explicit Residual(const Options& options) : relu_(options.relu) {}
  Variable forward(const Variable& x) override;

  Sequential& body = add<Sequential>("body");
  Sequential& shortcut = add<Sequential>("shortcut");

 private:
  bool relu_;
};

}  // namespace tern
