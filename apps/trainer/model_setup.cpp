#include "tern/apps/trainer/model_setup.h"

#include <algorithm>

#include "tern/apps/trainer/datasets.h"
#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/core/safetensors.h"
#include "tern/kernels/libraries.h"
#include "tern/optim/checkpoint.h"

namespace tern {

std::unique_ptr<Module> make_model(const Application& application, const TrainSettings& settings) {
  const ImageSpec images = describe_dataset(settings).spec;
  auto model = application.model({.images = training_transform(settings, images).output(images),
                                  .choices = settings.choices,
                                  .counts = settings.counts});
  model->initialize(static_cast<uint64_t>(settings.seed), DType::f32, parse_device(settings.device));
  if (settings.init.empty()) return model;
  try {
    const SafetensorsFile file = read_safetensors(settings.init);
    if (is_checkpoint(file))
      to_checkpoint(file, settings.init).restore("model", *model);
    else
      model->load_state(file.tensors);
  } catch (const InputError& error) {
    const std::string text = error.what();
    throw InputError("--init: " + (text.starts_with(settings.init) ? text : settings.init + ": " + text));
  }
  return model;
}

DType activation_dtype(const TrainSettings& settings) {
  return settings.precision == "bf16" ? DType::bf16 : DType::f32;
}

void prepare_machine(TrainSettings& settings, int local_ranks) {
  try {
    const Device device = parse_device(settings.device);
    device_backend(device);
    if (device.type == DeviceType::cuda)
      kernels::set_library_rules(device,
                                 {.tf32 = settings.precision == "tf32", .deterministic = settings.deterministic});
  } catch (const InputError& error) {
    throw InputError(std::string("--device: ") + error.what());
  }
  if (settings.threads == 0) settings.threads = std::max(1, thread_count() / local_ranks);
  set_thread_count(static_cast<int>(settings.threads));
}

}  // namespace tern
