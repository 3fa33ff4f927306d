#include "tern/apps/reproduce/cifarnet_setting.h"

#include <fmt/format.h>

#include <cmath>

#include "tern/networks/cifarnet.h"

namespace tern::reproduce {
namespace {

/// For a batch k times as large: √k times the rate, and an average over as many images.
void fit_batch(TrainSettings& settings, int64_t batch_size) {
  const double larger = static_cast<double>(batch_size) / static_cast<double>(settings.batch_size);
  settings.lr *= std::sqrt(larger);
  settings.ema_decay = std::pow(settings.ema_decay, larger);
}

/// The defaults of `train_cifarnet` with the setting's course.
TrainSettings settings_of(const CifarNetSetting& setting) {
  TrainSettings settings = networks::cifarnet().recipe.defaults;
  switch (setting.course) {
    case CifarNetCourse::paper: break;
    case CifarNetCourse::quick:
      settings.lr = 0.001;
      settings.lr_schedule = LrSchedule::cosine;
      settings.ema_decay = 0.99;
      break;
    case CifarNetCourse::swift:
      settings = networks::cifarnet().defaults(kSwift);
      fit_batch(settings, setting.batch_size);
      break;
  }
  return settings;
}

}  // namespace

std::vector<std::string> CifarNetSetting::flags() const {
  std::vector<std::string> words = {"--data", data.name};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  const TrainSettings settings = settings_of(*this);
  if (course == CifarNetCourse::swift) add({"--recipe", kSwift});
  add({"--batch-size", std::to_string(batch_size), "--iterations", std::to_string(iterations)});
  add({"--optimizer", to_string(settings.optimizer), "--weight-decay", fmt::format("{}", settings.weight_decay)});
  add({"--lr", fmt::format("{:.6g}", settings.lr)});
  if (course == CifarNetCourse::quick) add({"--lr-schedule", to_string(settings.lr_schedule)});
  add({"--ema-decay", fmt::format("{:.6g}", settings.ema_decay)});
  return words;
}

std::string CifarNetSetting::sentence() const {
  const CifarNetSetting with_usual_batch = {.data = data, .course = course};
  const TrainSettings settings = settings_of(with_usual_batch);
  const char* on = data.name == "cifar10" ? "CIFAR-10" : "generated shapes, **not on the paper's CIFAR-10**";
  const char* rule = settings.optimizer == UpdateRule::momentum ? "SGD with momentum 0.9" : "Adam";
  const char* falls = course == CifarNetCourse::paper ? "" : " and falls to zero along a cosine";
  std::string text = fmt::format(
      "CifarNet on {}. Training images are cropped to 24×24, mirrored, and changed in brightness and contrast, all at "
      "random. The optimizer is {}. Its learning rate is {}{}. The evaluated parameters are averages with a decay of "
      "{}.",
      on, rule, settings.lr, falls, settings.ema_decay);
  if (course == CifarNetCourse::swift)
    text +=
        " With a batch k times as large as 128, the rate is √k times as large, and the decay is its k-th power, so the "
        "average covers as many images. This is the recipe swift.";
  if (course == CifarNetCourse::quick) text += " This is a short form.";
  if (course != CifarNetCourse::paper)
    text += " The paper has Adam with a constant rate of 0.0002, and a decay of 0.9999.";
  return text + " Weight decay is 0.004, on the weights of the first two fully connected layers (section 4.1).";
}

std::vector<std::string> ternary_flags(int64_t workers) {
  return {"--workers", std::to_string(workers), "--transport", "inproc", "--codec", "ternary", "--exchange", "server"};
}

}  // namespace tern::reproduce
