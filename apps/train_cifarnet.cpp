#include "tern/apps/models/augmentation.h"
#include "tern/apps/models/cifarnet.h"
#include "tern/trainer/application.h"

// Trains CifarNet as TernGrad does (Wen et al., 2017, Table 1): `train_cifarnet --data cifar10 --data-dir DIR`, or on
// drawn shapes with no file. `--iterations 2000 --ema-decay 0` is a short run.

int main(int argc, char** argv) {
  return tern::train(argc, argv,
                     {.name = "train_cifarnet",
                      .model = [](const tern::ModelSpec& spec) -> std::unique_ptr<tern::Module> {
                        const auto& [channels, height, width, classes] = spec.images;
                        return std::make_unique<tern::models::CifarNet>(tern::models::CifarNet::Options{
                            .channels = channels, .height = height, .width = width, .classes = classes});
                      },
                      .defaults = {.data = "shapes",
                                   .iterations = 300'000,
                                   .batch_size = 128,
                                   .optimizer = tern::UpdateRule::adam,
                                   .lr = 2e-4,
                                   .weight_decay = 0.004,
                                   .ema_decay = 0.9999},
                      .augment = tern::models::augment_for_cifarnet});
}
