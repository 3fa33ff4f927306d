#include "tern/apps/trainer/unread_notes.h"

#include "tern/core/error.h"

namespace tern {

void UnreadNotes::tell_of(const Dataset& data) {
  const UnreadExamples unread = data.unread();
  if (unread.count == told_[&data]) return;
  told_[&data] = unread.count;
  std::string text = join({unread.count, " of ", data.size(), " images could not be read so far, others stand in for ",
                           unread.count == 1 ? "it" : "them"});
  for (const std::string& each : unread.first) text += (&each == &unread.first.front() ? ": " : "; ") + each;
  if (unread.count > std::ssize(unread.first)) text += "; ...";
  for (const auto& listener : listeners_) listener->noted(text);
}

}  // namespace tern
