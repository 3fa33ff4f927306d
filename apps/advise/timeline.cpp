#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "tern/apps/advise/postmortem.h"
#include "tern/dist/comm/failure.h"
#include "tern/trainer/report/chart.h"

namespace tern::advise {
namespace {

using State = OperationRecord::State;
using trainer::kBlue, trainer::kGreen, trainer::kGrey, trainer::kOrange, trainer::kPurple, trainer::kTeal;

constexpr double kLeft = 150, kWidth = 900, kRight = 110, kRow = 26, kBar = 14;

/// A kind of operation in the picture.
struct Kind {
  const char *name, *color;
};
constexpr Kind kKinds[] = {
    {"reductions", kBlue}, {"gathers", kTeal}, {"broadcasts", kPurple}, {"direct", kGreen}, {"barriers", kGrey}};

const Kind& kind_of(Operation operation) {
  switch (operation) {
    case Operation::all_reduce_sum:
    case Operation::all_reduce_max:
    case Operation::reduce_scatter: return kKinds[0];
    case Operation::all_gather:
    case Operation::gather: return kKinds[1];
    case Operation::broadcast:
    case Operation::fan_out: return kKinds[2];
    case Operation::all_to_all:
    case Operation::scatter:
    case Operation::shift: return kKinds[3];
    case Operation::barrier:
    case Operation::none: break;
  }
  return kKinds[4];
}

/// Draws one picture. Times are in seconds before the end.
class Timeline {
 public:
  explicit Timeline(const Postmortem& postmortem)
      : job_(postmortem), begin_(begin_of(postmortem)), axis_(begin_, 0, trainer::Scale::linear) {}

  std::string draw();

 private:
  static double begin_of(const Postmortem& job);
  static double before_end(const Postmortem& job, Clock::time_point time) {
    return std::chrono::duration<double>(time - job.end()).count();
  }
  double bottom() const { return top_ + kRow * job_.ranks(); }
  double x_of(double seconds) const { return kLeft + kWidth * std::clamp(axis_.position(seconds), 0.0, 1.0); }
  double x_of(int rank, Clock::time_point time) const { return x_of(before_end(job_, job_.common(rank, time))); }

  void text(double x, double y, const std::string& words, const char* attributes) {
    svg_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, trainer::escape_markup(words));
  }
  void box(double left, double right, double y, const std::string& attributes) {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" {}/>\n", left, y,
                        std::max(right - left, 0.8), kBar, attributes);
  }
  void draw_axis();
  void draw_legend(double y);
  void draw_row(int rank, double y);
  void draw_operations(const FlightRecord& record, double y);
  void draw_clock(const FlightRecord& record, double y);

  const Postmortem& job_;
  const double begin_;  // of the time axis
  trainer::Axis axis_;
  double top_ = 0;  // of the first row
  std::string svg_;
};

/// Shows the waits at the end, and before them a third of their time, at least 0.2 s.
double Timeline::begin_of(const Postmortem& job) {
  double stall = 0;
  for (int rank = 0; rank < job.ranks(); ++rank)
    if (const auto since = job.waits_since(rank)) stall = std::min(stall, before_end(job, *since));
  return stall - std::max(0.2, -stall / 3);
}

void Timeline::draw_axis() {
  for (const double tick : axis_.ticks(8)) {
    const double x = x_of(tick);
    svg_ += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" class=\"grid\"/>\n", x,
                        top_ - 8, bottom());
    text(x, bottom() + 18, trainer::tick_label(tick), "text-anchor=\"middle\"");
  }
  text(kLeft + kWidth + 8, top_ - 12, "clock", "");
  text(kLeft + kWidth, bottom() + 38,
       job_.failed() ? "seconds; the job failed at 0" : "seconds; the first record is of 0", "text-anchor=\"end\"");
}

void Timeline::draw_legend(double y) {
  double x = kLeft;
  const auto entry = [&](const std::string& name, const std::string& attributes) {
    box(x, x + 18, y - 11, attributes);
    text(x + 24, y, name, "");
    x += 44 + 6.6 * static_cast<double>(name.size());
  };
  for (const Kind& kind : kKinds) entry(kind.name, fmt::format("fill=\"{}\"", kind.color));
  entry("waits", fmt::format("fill=\"{}\"", trainer::kPaleOrange));
  entry("failed or running", fmt::format("fill=\"white\" stroke=\"{}\"", trainer::kRed));
}

void Timeline::draw_row(int rank, double y) {
  const FlightRecord* const record = job_.of(rank);
  const bool at_fault = job_.verdict().rank == rank;
  text(kLeft - 12, y + 11, fmt::format("rank {}", rank),
       at_fault ? "text-anchor=\"end\" class=\"fault\"" : "text-anchor=\"end\"");
  if (!record) {
    box(kLeft, kLeft + kWidth, y, fmt::format("fill=\"none\" stroke=\"{}\" stroke-dasharray=\"4 4\"", trainer::kRed));
    return text(kLeft + kWidth / 2, y + 11, "no record", "text-anchor=\"middle\" class=\"fault\"");
  }
  draw_operations(*record, y);
  if (const auto since = job_.waits_since(rank)) {
    const double left = x_of(before_end(job_, *since)), right = x_of(0);
    box(left, right, y, fmt::format("fill=\"{}\"", trainer::kPaleOrange));
    const auto peer = job_.awaited(rank);
    const std::string words = peer ? fmt::format("waits for rank {}", *peer) : "waits";
    if (right - left > 110) text((left + right) / 2, y + 11, words, "text-anchor=\"middle\"");
  }
  draw_clock(*record, y);
}

/// Bars closer than half a pixel become one, so that a picture stays small.
void Timeline::draw_operations(const FlightRecord& record, double y) {
  double left = 0, right = -1;
  const char* color = nullptr;
  const auto put = [&] {
    if (color) box(left, right, y, fmt::format("fill=\"{}\"", color));
  };
  for (const OperationRecord& each : record.operations) {
    if (each.state == State::queued || before_end(job_, job_.common(record.rank, each.started)) > 0) continue;
    const bool open = each.state != State::done;
    const double begin = x_of(record.rank, each.started);
    const double end = each.state == State::running ? x_of(0) : x_of(record.rank, each.ended);
    if (end <= kLeft) continue;
    if (open) {
      box(begin, end, y, fmt::format("fill=\"white\" stroke=\"{}\"", trainer::kRed));
    } else if (color == kind_of(each.message.operation).color && begin < right + 0.5) {
      right = std::max(right, end);
    } else {
      put();
      std::tie(left, right, color) = std::tuple(begin, end, kind_of(each.message.operation).color);
    }
  }
  put();
}

/// At the right end: by how much the whole row may be shifted.
void Timeline::draw_clock(const FlightRecord& record, double y) {
  const double end = kLeft + kWidth, middle = y + kBar / 2;
  if (!record.job.clock) return text(end + 8, y + 11, "not measured", "");
  const double error = std::chrono::duration<double>(record.job.clock->error).count();
  const double half = std::min(kWidth * (axis_.position(error) - axis_.position(0)), kWidth);
  svg_ += fmt::format(
      "<path d=\"M{0:.1f} {1:.1f}h{2:.1f}M{0:.1f} {3:.1f}v8M{4:.1f} {3:.1f}v8\" stroke=\"{5}\" fill=\"none\"/>\n",
      end - half, middle, 2 * half, middle - 4, end + half, trainer::kInk);
  text(end + half + 8, y + 11, fmt::format("± {:.2g} ms", 1e3 * error), "");
}

std::string Timeline::draw() {
  text(20, 34,
       fmt::format("Job {}: the last {:.3g} s of {} rank{}", job_.job(), -begin_, job_.ranks(),
                   job_.ranks() == 1 ? "" : "s"),
       "class=\"heading\"");
  double y = 56;
  for (const std::string& line : trainer::wrap(job_.headline(), 150)) {
    text(20, y, line, "");
    y += 16;
  }
  draw_legend(y + 8);
  top_ = y + 28;
  draw_axis();
  for (int rank = 0; rank < job_.ranks(); ++rank) draw_row(rank, top_ + kRow * rank);
  return trainer::svg_image(kLeft + kWidth + kRight, bottom() + 50, svg_);
}

}  // namespace

std::string draw_timeline(const Postmortem& postmortem) { return Timeline(postmortem).draw(); }

}  // namespace tern::advise
