#include "tern/apps/reproduce/engine/options.h"
#include "tern/apps/reproduce/engine/reproduction.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/core/program.h"
#include "tern/trainer/application.h"
#include "tern/trainer/job/program.h"

// Reproduces tables and figures of the papers. `reproduce list` lists them. `reproduce terngrad-fig3 --data-dir DIR`
// runs one, or continues it if it was stopped.

int main(int argc, char** argv) {
  using namespace tern::reproduce;
  tern::trainer::settle_output();
  tern::wait_passively(argc, argv);
  tern::trainer::Console console;
  return tern::trainer::run_application("reproduce", console, [&]() -> int {
    const ReproduceCommand command = read_command(argc, argv);
    if (!command.text.empty()) {
      tern::trainer::print_plainly(command.text);
    } else if (command.name == "list") {
      tern::trainer::print_plainly(experiment_list());
    } else {
      Reproduction(find_experiment(command.name), command, console).run();
    }
    return tern::kDone;
  });
}
