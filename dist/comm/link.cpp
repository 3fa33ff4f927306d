#include "tern/dist/comm/link.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tern/core/error.h"
#include "tern/dist/comm/forwarding_transport.h"
#include "tern/dist/comm/tcp/frame.h"

namespace tern {
namespace {

constexpr double kFrameBytes = detail::Frame::kBytes;

/// A transport that delays the messages of another transport as a Link would.
class Shaped final : public detail::ForwardingTransport {
 public:
  Shaped(std::unique_ptr<Transport> inner, const Link& link) : ForwardingTransport(std::move(inner)), link_(link) {}

  void send(int peer, const Message& message, std::span<const std::byte> bytes, Clock::time_point) override {
    out_free_ = std::max(out_free_, Clock::now()) + wire_time(bytes.size());
    inner().send(peer, message, bytes, out_free_ + link_.latency);
  }

  Clock::time_point receive(int peer, const Message& message, std::span<std::byte> bytes) override {
    const Clock::time_point due = inner().receive(peer, message, bytes);
    in_free_ = std::max(due, in_free_ + wire_time(bytes.size()));
    inner().idle_until(in_free_);
    return in_free_;
  }

 private:
  Clock::duration wire_time(size_t bytes) const {
    if (link_.bytes_per_second == 0) return {};
    const std::chrono::duration<double> time((static_cast<double>(bytes) + kFrameBytes) / link_.bytes_per_second);
    return std::chrono::duration_cast<Clock::duration>(time);
  }

  Link link_;
  Clock::time_point out_free_, in_free_;  // when each direction of the cable is idle again
};

/// Reads a number with one of the units; returns number · unit.
double read_quantity(const std::string& text, const std::vector<std::pair<std::string, double>>& units,
                     std::string_view whole) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string names;
  for (const auto& [name, factor] : units) {
    if (end != text.c_str() && name == end && number >= 0 && std::isfinite(number)) return number * factor;
    names += (names.empty() ? "" : ", ") + name;
  }
  fail_input({"link '", whole, "': '", text, "' is not a number and one of ", names});
}

}  // namespace

Link parse_link(std::string_view text) {
  constexpr double kMostLatency = 3600, kLeastRate = 1e3 / 8;
  Link link;
  std::set<std::string_view> given;
  for (size_t at = 0; at <= text.size();) {
    const std::string_view part = text.substr(at, std::min(text.size(), text.find(',', at)) - at);
    at += part.size() + 1;
    const size_t equals = part.find('=');
    const bool named = equals != std::string_view::npos;
    const std::string_view name = named ? part.substr(0, equals) : "rate";
    const std::string value(named ? part.substr(equals + 1) : part);
    check_input(!part.empty(), "link '", text, "': a part is empty, expected rate=1gbit or latency=0.2ms");
    check_input(given.insert(name).second, "link '", text, "': ", name, " is given twice");
    if (name == "rate") {
      link.bytes_per_second = read_quantity(value, {{"kbit", 1e3 / 8}, {"mbit", 1e6 / 8}, {"gbit", 1e9 / 8}}, text);
      check_input(link.bytes_per_second >= kLeastRate, "link '", text,
                  "': the rate is below 1kbit, expected 1kbit or more");
    } else if (name == "latency") {
      const double seconds = read_quantity(value, {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}, text);
      check_input(seconds <= kMostLatency, "link '", text, "': the latency is beyond ", kMostLatency, " s");
      link.latency = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    } else {
      fail_input({"link: found '", part, "', expected rate=1gbit,latency=0.2ms, or one of the two, or 1gbit"});
    }
  }
  return link;
}

std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> transport, const Link& link) {
  return std::make_unique<Shaped>(std::move(transport), link);
}

}  // namespace tern
