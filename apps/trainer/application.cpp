#include "tern/trainer/application.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/core/program.h"
#include "tern/trainer/flags/command_line.h"
#include "tern/trainer/job/launch.h"
#include "tern/trainer/job/program.h"
#include "tern/trainer/rank/machine.h"
#include "tern/trainer/run/inference.h"

namespace tern {

using namespace trainer;

const Field& ModelSpec::field(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &Field::name);
  check_input(found != fields.end(), "the samples of this data set have no field '", name, "', which the model needs");
  return *found;
}

int run_application(const std::string& name, const std::function<int()>& body) {
  Console console;
  return trainer::run_application(name, console, body);
}

int train(int argc, char** argv, const Application& application) {
  settle_output();
  wait_passively(argc, argv);
  Console console;
  return trainer::run_application(application.name, console, [&]() -> int {
    Invocation invocation = read_flags(argc, argv, application);
    if (!invocation.run) {
      print_plainly(invocation.text);
      return kDone;
    }
    TrainSettings& settings = invocation.settings;
    console.patience = settings.grace;
    if (settings.predict.empty() && !settings.eval_only)
      return launch(application, settings, invocation.place, console, argv);
    check_places(settings);
    prepare_machine(settings);
    if (!settings.predict.empty())
      predict(application, settings);
    else
      evaluate_only(application, settings, console.out);
    return kDone;
  });
}

}  // namespace tern
