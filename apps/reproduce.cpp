#include <cstdio>

#include "tern/apps/reproduce/engine/options.h"
#include "tern/apps/reproduce/engine/reproduction.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/trainer/application.h"
#include "tern/apps/trainer/job/program.h"

// Repeats tables and figures of the papers: `reproduce list` names them, `reproduce terngrad-fig3 --data-dir DIR` runs
// one, and goes on with it where it was stopped.

int main(int argc, char** argv) {
  using namespace tern::reproduce;
  tern::wait_passively(argv);
  return tern::run_application("reproduce", [&]() -> int {
    const ReproduceCommand command = read_command(argc, argv);
    if (!command.text.empty()) {
      std::fputs(command.text.c_str(), stdout);
    } else if (command.name == "list") {
      std::fputs(experiment_list().c_str(), stdout);
    } else {
      Reproduction(find_experiment(command.name), command).run();
    }
    return tern::kDone;
  });
}
