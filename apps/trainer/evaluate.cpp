#include "tern/apps/trainer/evaluate.h"

#include <algorithm>

#include "tern/apps/trainer/diagnosis.h"
#include "tern/autograd/loss.h"

namespace tern {
namespace {

/// Puts a model into evaluation mode, and back.
class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model) : model_(model), was_training_(model.training()) {
    model_.set_training(false);
  }
  ~EvaluationMode() { model_.set_training(was_training_); }

 private:
  Module& model_;
  bool was_training_;
};

}  // namespace

int64_t count_correct(const Tensor& logits, const Tensor& labels) {
  const Tensor rows = logits.to(DType::f32);
  const int64_t classes = rows.size(1);
  const float* row = rows.data<float>();
  int64_t correct = 0;
  for (const int64_t label : labels.span<int64_t>()) {
    correct += std::max_element(row, row + classes) - row == label;
    row += classes;
  }
  return correct;
}

std::optional<Evaluation> evaluate(Module& model, DataLoader& loader, DType dtype, const std::string& when,
                                   const std::function<bool()>& stop) {
  const NoGradient no_gradient;
  const EvaluationMode mode(model);
  Evaluation found;
  loader.start({});
  while (const auto batch = loader.next()) {
    if (stop()) return std::nullopt;
    const Variable x(batch->images.to(dtype));
    const Variable logits = model(x);
    const double value = cross_entropy(logits, batch->labels).value().item();
    check_finite(value, when, model, x);
    found.loss_sum += value * static_cast<double>(batch->size());
    found.correct += count_correct(logits.value(), batch->labels);
    found.images += batch->size();
  }
  return found;
}

}  // namespace tern
