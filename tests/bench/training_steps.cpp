#include <fmt/format.h>

#include <memory>

#include "tern/autograd/functional.h"
#include "tern/networks/alexnet.h"
#include "tern/networks/cifarnet.h"
#include "tern/networks/googlenet.h"
#include "tern/networks/lenet.h"
#include "tern/networks/mlp.h"
#include "tern/networks/resnet.h"
#include "tern/networks/vgg.h"
#include "tern/optim/sgd.h"
#include "tests/bench/case.h"

namespace tern::bench {
namespace {

/// The data that a model trains on.
struct Task {
  Shape sample;
  int64_t classes;
  int64_t batch = 64;
};

/// A training step on one batch. It does forward, loss, backward and momentum update, as the trainer does.
class TrainingStep {
 public:
  TrainingStep(std::unique_ptr<Layer> model, const Task& task, DType dtype) : model_(std::move(model)) {
    model_->initialize(1);
    std::vector<int64_t> extents{task.batch};
    extents.insert(extents.end(), task.sample.begin(), task.sample.end());
    x_ = Tensor::empty(Shape(extents));
    const RandomStream random({.seed = 1, .purpose = Purpose::test});
    for (int64_t i = 0; i < x_.numel(); ++i) x_.data<float>()[i] = random.normal(static_cast<uint64_t>(i));
    if (x_.rank() == 4) x_ = x_.to(MemoryFormat::channels_last);
    x_ = x_.to(dtype);
    std::vector<int64_t> labels;
    for (int64_t n = 0; n < task.batch; ++n) labels.push_back(n % task.classes);
    labels_ = Tensor::from({task.batch}, labels);
    model_->begin_step({.seed = 1, .samples = Tensor::zeros({task.batch}, {DType::i64})});
    optimizer_ = std::make_unique<Sgd>(model_->parameters(), Sgd::Options{.lr = 1e-3, .momentum = 0.9});
  }

  void run() {
    optimizer_->zero_gradients();
    const Variable loss = cross_entropy((*model_)(x_), labels_);
    loss.backward();
    optimizer_->step();
    loss.value().item();
  }

 private:
  std::unique_ptr<Layer> model_;
  std::unique_ptr<Sgd> optimizer_;
  Tensor x_, labels_;
};

template <class Model>
void add_model(std::vector<Case>& cases, const char* name, const Task& task,
               const typename Model::Options& options = {}) {
  for (const int threads : kThreads)
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const char* precision = dtype == DType::f32 ? "fp32" : "bf16";
      cases.push_back({fmt::format("train_step/{}/b{}/t{}/{}", name, task.batch, threads, precision), threads, [=] {
                         const auto step =
                             std::make_shared<TrainingStep>(std::make_unique<Model>(options), task, dtype);
                         return [=] { step->run(); };
                       }});
    }
}

}  // namespace

void add_training_steps(std::vector<Case>& cases) {
  add_model<networks::LeNet>(cases, "lenet", {{1, 28, 28}, 10});
  add_model<networks::CaffeLeNet>(cases, "lenet_caffe", {{1, 28, 28}, 10});
  add_model<networks::Mlp>(cases, "mlp4096", {{4096}, 35}, {.norm = networks::MlpNorm::none});
  add_model<networks::CifarNet>(cases, "cifarnet", {{3, 24, 24}, 10});
  add_model<networks::ResNet>(cases, "resnet20", {{3, 32, 32}, 10}, {.depth = 20});
  add_model<networks::ResNet>(cases, "resnet18", {{3, 32, 32}, 10}, {.depth = 18});
  add_model<networks::OneTowerAlexNet>(cases, "alexnet224", {{3, 224, 224}, 1000, 32});
  const Task photos = {{3, 224, 224}, 1000, 16};
  add_model<networks::Vgg>(cases, "vgg_a", photos, {.norm = networks::VggNorm::convolutions});
  add_model<networks::Vgg>(cases, "vgg12", photos,
                           {.depth = networks::VggDepth::twelve, .norm = networks::VggNorm::all});
  add_model<networks::Vgg>(cases, "vgg16", photos,
                           {.depth = networks::VggDepth::sixteen, .norm = networks::VggNorm::convolutions});
  add_model<networks::Vgg>(cases, "vgg19", photos, {.depth = networks::VggDepth::nineteen});
  add_model<networks::GoogLeNet>(cases, "googlenet", photos);
  add_model<networks::GoogLeNet>(cases, "bn_inception", photos,
                                 {.variant = networks::InceptionVariant::bn_inception, .dropout = 0});
}

}  // namespace tern::bench
