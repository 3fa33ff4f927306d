#include "tern/apps/models/lenet.h"
#include "tern/core/error.h"
#include "tern/trainer/application.h"

// Trains LeNet on handwritten digits: `train_lenet --data mnist --data-dir DIR`, or on drawn digits with no file.

int main(int argc, char** argv) {
  return tern::train(
      argc, argv,
      {.name = "train_lenet",
       .model = [](const tern::ModelSpec& spec) -> std::unique_ptr<tern::Module> {
         const auto& [channels, height, width, classes] = spec.images;
         tern::check_input(channels == 1 && height == 28 && width == 28, "LeNet: found images of ", channels, "x",
                           height, "x", width, ", expected 1x28x28");
         if (spec.choices.at("variant") == "caffe") return std::make_unique<tern::models::CaffeLeNet>();
         return std::make_unique<tern::models::LeNet>();
       },
       .choices = {
           {.flag = "variant", .values = {"terngrad", "caffe"}, .help = "LeNet of the TernGrad paper, or of Caffe"}}});
}
