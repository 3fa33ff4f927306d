#pragma once

#include <string_view>

namespace tern {

/// What a model is, beside a Module, of which weight decay shrinks a part alone.
class PartlyDecayed {
 public:
  virtual ~PartlyDecayed() = default;
  virtual bool decays(std::string_view parameter) const = 0;
};

/// Whether weight decay shrinks `parameter` of `model`: as a PartlyDecayed says, and all of any other.
template <class Model>
bool decays(const Model& model, std::string_view parameter) {
  const auto* partly = dynamic_cast<const PartlyDecayed*>(&model);
  return partly == nullptr || partly->decays(parameter);
}

}  // namespace tern
