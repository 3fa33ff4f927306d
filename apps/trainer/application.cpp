#include "tern/trainer/application.h"

#include <filesystem>
#include <new>

#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/trainer/flags/command_line.h"
#include "tern/trainer/job/launch.h"
#include "tern/trainer/job/machine.h"
#include "tern/trainer/job/program.h"
#include "tern/trainer/run/inference.h"
#include "tern/trainer/run/interrupt.h"
#include "tern/trainer/run/recipe.h"

namespace tern {
namespace {

using namespace trainer;

int exit_code_of(const std::string& name, Console& console, const std::function<int()>& body) {
  const auto end = [&](const char* sentence, ExitCode code) {
    if (*sentence != '\0') console.err.print(name + ": " + sentence);
    return static_cast<int>(code);
  };
  try {
    return body();
  } catch (const Interrupted& stop) {
    return end(stop.what(), kInterrupted);
  } catch (const InputError& error) {
    return end(error.what(), kBadInput);
  } catch (const PeerError& error) {
    return end(error.what(), kLostPeer);
  } catch (const std::filesystem::filesystem_error& error) {
    return end((error.path1().string() + ": " + error.code().message()).c_str(), kBadInput);
  } catch (const std::bad_alloc&) {
    return end("out of memory", kInternalError);
  } catch (const std::exception& error) {
    return end(error.what(), kInternalError);
  }
}

/// Ends as Console::finish does.
int run_with(Console& console, const std::string& name, const std::function<int()>& body) {
  const int code = exit_code_of(name, console, body);
  console.finish(name, code);
  return code;
}

}  // namespace

int run_application(const std::string& name, const std::function<int()>& body) {
  Console console;
  return run_with(console, name, body);
}

int train(int argc, char** argv, const Application& application) {
  settle_output();
  wait_passively(argv);
  Console console;
  return run_with(console, application.name, [&]() -> int {
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
