#include "tern/apps/reproduce/cifarnet_setting.h"

#include <fmt/format.h>

#include "tern/networks/cifarnet.h"
#include "tern/trainer/flags/command_line.h"

namespace tern::reproduce {

using namespace trainer;

namespace {

/// The defaults of `train_cifarnet` with the course's rate, schedule and average.
TrainSettings settings_of(CifarNetCourse course) {
  if (course == CifarNetCourse::swift) return networks::cifarnet().defaults(kSwift);
  TrainSettings settings = networks::cifarnet().recipe.defaults;
  if (course == CifarNetCourse::paper) return settings;
  settings.lr = 0.001;
  settings.lr_schedule = LrSchedule::cosine;
  settings.ema_decay = 0.99;
  return settings;
}

}  // namespace

std::vector<std::string> CifarNetSetting::flags() const {
  std::vector<std::string> words = {"--data", data.name};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (course == CifarNetCourse::swift) add({"--recipe", kSwift});
  add({"--batch-size", std::to_string(batch_size), "--iterations", std::to_string(iterations)});
  if (course == CifarNetCourse::swift) return words;
  const TrainSettings settings = settings_of(course);
  add({"--optimizer", to_string(settings.optimizer), "--weight-decay", fmt::format("{}", settings.weight_decay)});
  add({"--lr", fmt::format("{}", settings.lr)});
  if (course == CifarNetCourse::quick) add({"--lr-schedule", to_string(settings.lr_schedule)});
  add({"--ema-decay", fmt::format("{}", settings.ema_decay)});
  return words;
}

std::string CifarNetSetting::sentence() const {
  const TrainSettings settings = settings_of(course);
  const char* on = data.name == "cifar10" ? "CIFAR-10" : "generated shapes, **not on the paper's CIFAR-10**";
  std::string text = fmt::format(
      "CifarNet on {}. Training images are cropped to 24×24, mirrored, and changed in brightness and contrast, all at "
      "random. The optimizer is Adam. Its learning rate is {}{}. The evaluated parameters are averages with a decay of "
      "{}.",
      on, settings.lr, course == CifarNetCourse::paper ? "" : " and falls to zero along a cosine", settings.ema_decay);
  if (course != CifarNetCourse::paper)
    text += fmt::format(" {}: the paper has a constant rate of 0.0002 and a decay of 0.9999.",
                        course == CifarNetCourse::quick ? "This is a short form" : "This is the recipe swift");
  return text + " Weight decay is 0.004, on the weights of the first two fully connected layers (section 4.1).";
}

std::vector<std::string> ternary_flags(int64_t workers) {
  return {"--workers", std::to_string(workers), "--transport", "inproc", "--codec", "ternary", "--exchange", "server"};
}

TrainSettings read_settings(const Application& application, const std::vector<std::string>& words) {
  std::vector<const char*> arguments = {application.name.c_str()};
  for (const auto& word : words) arguments.push_back(word.c_str());
  return read_flags(static_cast<int>(arguments.size()), arguments.data(), application).settings;
}

}  // namespace tern::reproduce
