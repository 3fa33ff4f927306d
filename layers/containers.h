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

/// Layers that all take x [N, C, ...]. It concatenates their outputs along the channels (Szegedy et al., "Going deeper
/// with convolutions", 2015). Their names are "branch1", "branch2", ..., as in torchvision's Inception.
class Branches final : public Layer {
 public:
  struct Options {};
  explicit Branches(const Options& = {}) {}

  /// Appends a branch and returns it: `append<Sequential>().append<MaxPool2d>(...).append<Conv2d>(...)`. A Sequential
  /// without layers passes x.
  template <std::derived_from<Layer> L>
  L& append() {
    return static_cast<L&>(*branches_.emplace_back(&add<L>(next_name())));
  }
  template <std::derived_from<Layer> L>
  L& append(const typename L::Options& options) {
    return static_cast<L&>(*branches_.emplace_back(&add<L>(next_name(), options)));
  }
  Variable forward(const Variable& x) override;

 private:
  std::string next_name() const { return "branch" + std::to_string(branches_.size() + 1); }

  std::vector<Layer*> branches_;
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
