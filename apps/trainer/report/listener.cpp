#include "tern/trainer/report/listener.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/trainer/report/curves.h"
#include "tern/trainer/report/event_file.h"
#include "tern/trainer/report/json_log.h"
#include "tern/trainer/report/progress.h"

namespace tern::trainer {

std::vector<std::unique_ptr<Listener>> make_listeners(const TrainSettings& s, LineWriter& out) {
  std::vector<std::unique_ptr<Listener>> listeners;
  if (!s.quiet) listeners.push_back(std::make_unique<Progress>(out));
  if (!s.log.empty()) listeners.push_back(std::make_unique<JsonLog>(s.log, s.resume));
  if (!s.tensorboard.empty()) listeners.push_back(std::make_unique<EventFile>(s.tensorboard));
  if (!s.plot.empty()) listeners.push_back(std::make_unique<Curves>(s.plot));
  return listeners;
}

void UnreadNotes::tell_of(const Dataset& data, const Team& team, const std::string& noun) {
  constexpr int64_t kNamed = 3;
  std::string own;
  for (const std::string& each : data.unread()) own += each + '\0';
  const std::string all = team.gather(own);
  std::set<std::string> unread;  // a set: ranks of one process share them, others find the same ones in later epochs
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end + 1) {
    end = std::min(all.find('\0', begin), all.size());
    unread.insert(printable(all.substr(begin, end - begin)));
  }
  if (listeners_.empty() || unread.size() == told_[&data]) return;
  told_[&data] = unread.size();
  std::string text = join({unread.size(), " of ", data.size(), " ", noun, " could not be read so far, others replace ",
                           unread.size() == 1 ? "it" : "them"});
  const char* before = ": ";
  int64_t named = 0;
  for (auto each = unread.begin(); each != unread.end() && named < kNamed; ++each, ++named)
    text += std::exchange(before, "; ") + *each;
  if (std::ssize(unread) > kNamed) text += "; ...";
  for (const auto& listener : listeners_) listener->noted(text);
}

}  // namespace tern::trainer
