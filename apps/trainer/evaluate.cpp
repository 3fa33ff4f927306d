#include "tern/apps/trainer/evaluate.h"

#include <algorithm>

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

std::vector<int64_t> predicted_classes(const Tensor& logits) {
  const Tensor rows = logits.to(DType::f32);
  const auto values = rows.span<float>();
  const int64_t classes = rows.size(1);
  std::vector<int64_t> largest;
  for (auto row = values.begin(); row != values.end(); row += classes)
    largest.push_back(std::max_element(row, row + classes) - row);
  return largest;
}

std::optional<Evaluation> evaluate(Module& model, DataLoader& loader, DType dtype, const std::function<bool()>& stop) {
  const NoGradient no_gradient;
  const EvaluationMode mode(model);
  int64_t images = 0, correct = 0;
  double loss = 0;
  loader.start({});
  while (const auto batch = loader.next()) {
    if (stop()) return std::nullopt;
    const Variable logits = model(Variable(batch->images.to(dtype)));
    loss += cross_entropy(logits, batch->labels).value().item() * static_cast<double>(batch->size());
    const auto classes = predicted_classes(logits.value());
    const auto labels = batch->labels.span<int64_t>();
    for (size_t i = 0; i < classes.size(); ++i) correct += classes[i] == labels[i];
    images += batch->size();
  }
  return Evaluation{.accuracy = static_cast<double>(correct) / static_cast<double>(images),
                    .loss = loss / static_cast<double>(images)};
}

}  // namespace tern
