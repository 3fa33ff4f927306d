#include "tern/dist/comm/tcp/members.h"

#include <sstream>

#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/dist/comm/transport.h"

namespace tern::detail {

std::string Member::name_of(int rank) const { return join({"rank ", rank, " (", host, ", process ", process, ")"}); }

std::string format(const Members& members) {
  std::ostringstream text;
  text << members.job << '\n';
  for (const Member& m : members.ranks)
    text << m.process << ' ' << m.address.host << ' ' << m.address.port << ' ' << m.host << '\n';
  return text.str();
}

Members parse_members(std::string_view text, int size) {
  std::istringstream stream{std::string(text)};
  Members members;
  std::getline(stream, members.job);
  check_job_name(members.job);
  members.ranks.resize(static_cast<size_t>(size));
  for (Member& m : members.ranks) {
    stream >> m.process >> m.address.host >> m.address.port;
    stream.get();
    std::getline(stream, m.host);
    m.host = printable(m.host);
  }
  check(stream.good() && stream.peek() == EOF, "sent a list of ranks that is not whole");
  return members;
}

}  // namespace tern::detail
