#include "tern/apps/reproduce/experiment.h"
#include "tern/apps/reproduce/options.h"
#include "tern/apps/reproduce/reproduction.h"
#include "tern/trainer/application.h"
#include "tern/trainer/job/program.h"

// Repeats tables and figures of the papers: `reproduce list` names them, `reproduce terngrad-fig3 --data-dir DIR` runs
// one, and goes on with it where it was stopped.

int main(int argc, char** argv) {
  using namespace tern::trainer;
  settle_output();
  wait_passively(argv);
  Console console;
  return run_application("reproduce", console, [&]() -> int {
    const tern::ReproduceCommand command = tern::read_command(argc, argv);
    if (!command.text.empty()) {
      print_plainly(command.text);
      return tern::kDone;
    }
    tern::Reproduction(tern::find_experiment(command.name), command, console).run();
    return tern::kDone;
  });
}
