#include "tern/apps/trainer/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tern/apps/trainer/application.h"
#include "tern/apps/trainer/interrupt.h"
#include "tern/apps/trainer/progress.h"
#include "tern/core/error.h"

namespace tern {

void Console::finish(const std::string& name, int code) {
  if (out.full() != 0)
    err.print(fmt::format("{}: stdout cannot be written: {}; lines of it are lost", name, std::strerror(out.full())));
  if (!out.pending() && !err.pending()) return;
  const InterruptGuard interrupt;
  const auto wait = [&](LineWriter& writer, bool in_full) {
    constexpr double kShort = 1;  // second, for a reader that is alive
    return writer.finish([&] {
      return std::chrono::duration<double>(in_full && !interrupt.interrupted() ? patience : std::min(kShort, patience));
    });
  };
  const int64_t lost = wait(out, code == kDone);
  if (lost > 0)
    err.print(fmt::format("{}: the last {} line{} of stdout {} not written: its reader took nothing", name,
                          grouped(lost), lost == 1 ? "" : "s", lost == 1 ? "was" : "were"));
  wait(err, lost == 0 && code != kInterrupted);
}

void print_plainly(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (written < 0 && errno == EPIPE) return;
    check_input(written >= 0 || errno == EINTR, "stdout: cannot be written: ", std::strerror(errno));
    if (written > 0) done += static_cast<size_t>(written);
  }
}

}  // namespace tern
