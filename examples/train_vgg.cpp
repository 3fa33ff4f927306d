// A small network in the manner of VGG (Simonyan and Zisserman, 2015): pairs of 3x3 convolutions with batch
// normalisation, and a pooling after each pair.
//
//   train_vgg --data-dir DIR                 # CIFAR-10; about 89 % after 20 epochs
//   train_vgg --data shapes --epochs 1       # generated pictures, no files

#include <tern/tern.h>
#include <tern/trainer/application.h>

using namespace tern;

struct Vgg final : Layer {
  Vgg(int64_t channels, int64_t classes) : fc(add<Linear>("fc", {.in = 128, .out = classes})) {
    int64_t in = channels;
    for (const int64_t out : {32, 64, 128}) {
      for (int i = 0; i < 2; ++i) {
        features.append<Conv2d>({.in = in, .out = out, .kernel = 3, .padding = 1, .bias = false});
        features.append<BatchNorm2d>({.features = out, .relu = true});
        in = out;
      }
      features.append<MaxPool2d>({.window = 2});
    }
  }
  Variable forward(const Variable& x) override { return fc(flatten(global_average_pool2d(features(x)))); }

  Sequential& features = add<Sequential>("features");
  Linear& fc;
};

std::unique_ptr<Module> make_vgg(const ModelSpec& spec) {
  return std::make_unique<Vgg>(spec.images.channels, spec.images.classes);
}

int main(int argc, char** argv) {
  return train(argc, argv,
               {.name = "train_vgg",
                .model = make_vgg,
                .defaults = {.data = "cifar10",
                             .epochs = 20,
                             .batch_size = 128,
                             .lr = 0.1,
                             .lr_schedule = LrSchedule::cosine,
                             .weight_decay = 5e-4},
                .augment = [](Transform& transform, const ImageSpec& images) {
                  transform.pad = 4;
                  transform.crop_height = images.height;
                  transform.crop_width = images.width;
                  transform.random_crop = transform.random_flip = true;
                }});
}
