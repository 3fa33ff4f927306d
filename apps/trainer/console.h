#pragma once

#include <unistd.h>

#include <string>

#include "tern/apps/trainer/line_writer.h"

namespace tern {

/// What a program tells a person while it works: its own stdout and stderr, whose readers it never waits for before its
/// end.
struct Console {
  LineWriter out{STDOUT_FILENO}, err{STDERR_FILENO};
  double patience = 60;  ///< seconds that the end waits for a reader who takes nothing

  /// At the end of the program `name`, with its exit code: waits for the readers of what is pending, and says on stderr
  /// how many lines of stdout are lost. A signal, and a code that says that the run was not done, cut this short.
  void finish(const std::string& name, int code);
};

/// Writes all of `text` to stdout and waits for its reader as long as it takes. A reader that has gone is no error; an
/// InputError says why else it cannot be written.
void print_plainly(const std::string& text);

}  // namespace tern
