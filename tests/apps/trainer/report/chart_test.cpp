#include "tern/trainer/report/chart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/trainer/report/curves.h"
#include "tests/apps/train_lenet.h"

namespace tern {
namespace {

using namespace trainer;

/// Returns true if all elements close in the right order and each tag has an even number of quotes.
bool well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; (at = xml.find('<', at)) != std::string::npos;) {
    const size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos || std::ranges::count(tag, '"') % 2 != 0) return false;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      if (open.empty() || '/' + open.back() != tag) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty();
}

TEST(Axis, TicksStandAtRoundNumbersInTheRange) {
  EXPECT_EQ(Axis(0, 937, Scale::linear).ticks(5), (std::vector<double>{0, 200, 400, 600, 800}));
  EXPECT_EQ(Axis(0.009, 0.6, Scale::logarithmic).ticks(8), (std::vector<double>{0.01, 0.02, 0.05, 0.1, 0.2, 0.5}));
  EXPECT_EQ(Axis(0.5, 5e6, Scale::logarithmic).ticks(5), (std::vector<double>{1, 10, 100, 1e3, 1e4, 1e5, 1e6}));
  EXPECT_EQ(Axis(1.1, 5.2, Scale::logarithmic).ticks(5), (std::vector<double>{1.5, 2, 3, 4, 5}));
  EXPECT_EQ(Axis(2.1, 2.9, Scale::logarithmic).ticks(4), Axis(2.1, 2.9, Scale::linear).ticks(4)) << "few round numbers";
  for (const double tick : Axis(97.31, 99.4, Scale::linear).ticks(5)) {
    EXPECT_GE(tick, 97.31);
    EXPECT_LE(tick, 99.4);
    EXPECT_NEAR(tick * 2, std::round(tick * 2), 1e-9);
  }
}

TEST(Axis, LabelsAreShort) {
  EXPECT_EQ(tick_label(0), "0");
  EXPECT_EQ(tick_label(0.05), "0.05");
  EXPECT_EQ(tick_label(1500), "1,500");
  EXPECT_EQ(tick_label(20000), "20k");
  EXPECT_EQ(tick_label(2.5e6), "2.5M");
}

TEST(Chart, IsWellFormedAndSmallForAnyNumberOfPoints) {
  for (const int points : {0, 1, 2, 100000}) {
    Chart chart{
        .title = "a < b & \"c\"", .x_label = "step", .series = {{.label = "line", .color = "#2563eb", .points = {}}}};
    chart.y_scale = points == 0 ? Scale::logarithmic : Scale::linear;
    for (int i = 0; i < points; ++i) chart.series[0].points.emplace_back(i, std::sin(i));
    const std::string svg = draw_charts("heading", "below", {&chart, 1});
    EXPECT_TRUE(well_formed(svg)) << points;
    EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
    EXPECT_LT(svg.size(), 40000);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
  }
}

TEST(Chart, HasNoAxesWithoutPoints) {
  Chart chart{.title = "title", .x_label = "step", .series = {{"line", kBlue, {}}}, .x_range = {{0, 10}}};
  const auto drawn = [&] { return draw_charts("heading", "below", {&chart, 1}); };
  EXPECT_NE(drawn().find(">no results yet</text>"), std::string::npos);
  EXPECT_EQ(drawn().find(">step</text>"), std::string::npos);
  chart.series[0].points = {{1, 2}};
  EXPECT_EQ(drawn().find("no results yet"), std::string::npos);
  EXPECT_NE(drawn().find(">step</text>"), std::string::npos);
}

TEST(Chart, NamesALogarithmicScale) {
  Chart chart{.title = "title", .x_label = "step", .series = {{"line", kBlue, {{1, 2}, {10, 20}}}}};
  const auto drawn = [&] { return draw_charts("heading", "below", {&chart, 1}); };
  EXPECT_EQ(drawn().find("log scale"), std::string::npos);
  chart.y_scale = Scale::logarithmic;
  EXPECT_NE(drawn().find(">title (log scale)</text>"), std::string::npos);
  chart.x_scale = Scale::logarithmic;
  EXPECT_NE(drawn().find(">step (log scale)</text>"), std::string::npos);
}

TEST(Chart, WrapsALongSubheadingAndGrowsByItsLines) {
  const Chart chart{.title = "title", .x_label = "step", .series = {}};
  const auto drawn = [&](const std::string& below) { return draw_charts("heading", below, {&chart, 1}); };
  EXPECT_NE(drawn("a few words").find(">a few words</text>"), std::string::npos);
  EXPECT_NE(drawn("a few words").find("height=\"484\""), std::string::npos);
  const std::string first(60, 'x'), second(60, 'y');
  const std::string svg = drawn(first + " " + second);
  EXPECT_NE(svg.find(">" + first + "</text>"), std::string::npos);
  EXPECT_NE(svg.find(">" + second + "</text>"), std::string::npos);
  EXPECT_NE(svg.find("height=\"500\""), std::string::npos);
}

TEST(Chart, WrapsALongHeadingAboveTheRest) {
  const Chart chart{.title = "title", .x_label = "step", .series = {}};
  const std::string first(30, 'x'), second(30, 'y');
  const std::string svg = draw_charts(first + " " + second, "below", {&chart, 1});
  const auto line_with = [&](const std::string& text) {
    const size_t end = svg.find(">" + text + "</text>"), begin = svg.rfind("<text", end);
    return svg.substr(begin, end - begin);
  };
  EXPECT_EQ(line_with(first), "<text x=\"64\" y=\"34\" class=\"heading\"");
  EXPECT_EQ(line_with(second), "<text x=\"64\" y=\"58\" class=\"heading\"");
  EXPECT_EQ(line_with("below"), "<text x=\"64\" y=\"78\"");
  EXPECT_NE(svg.find("height=\"508\""), std::string::npos);
}

TEST(Chart, SpacesItsLegendByCharacters) {
  const auto place_behind = [](const std::string& label) {
    const Chart chart{.title = "title", .x_label = "step", .series = {{label, kBlue, {{1, 1}}}, {"next", kOrange, {}}}};
    const std::string svg = draw_charts("heading", "below", {&chart, 1});
    const size_t end = svg.find(">next</text>"), begin = svg.rfind("<text", end);
    return svg.substr(begin, end - begin);
  };
  EXPECT_EQ(place_behind("√σ²×"), place_behind("abcd"));
  EXPECT_NE(place_behind("√σ²"), place_behind("abcd"));
}

TEST(Chart, WrapsALongLegend) {
  const std::string first(30, 'x'), second(30, 'y'), third(5, 'z');
  const Chart chart{.title = "title",
                    .x_label = "step",
                    .series = {{first, kBlue, {{1, 1}}}, {second, kOrange, {}}, {third, kGreen, {}}}};
  const Chart other{.title = "other", .x_label = "step", .series = {{"short", kBlue, {{1, 1}}}}};
  const std::string svg = draw_charts("heading", "below", std::vector{chart, other});
  const auto place_of = [&](const std::string& text) {
    const size_t end = svg.find(">" + text + "</text>"), begin = svg.rfind("<text", end);
    return svg.substr(begin, svg.find("\" ", svg.find(" y=", begin)) - begin);
  };
  EXPECT_EQ(place_of("title"), "<text x=\"64.0\" y=\"94.0");
  EXPECT_EQ(place_of(first), "<text x=\"86.0\" y=\"115.0");
  EXPECT_EQ(place_of(second), "<text x=\"86.0\" y=\"133.0");
  EXPECT_EQ(place_of(third), "<text x=\"328.0\" y=\"133.0");
  EXPECT_EQ(place_of("short"), "<text x=\"634.0\" y=\"115.0");  // in line with its neighbour's
  EXPECT_NE(svg.find("height=\"502\""), std::string::npos);
}

TEST(Chart, KnowsTheExtentOfItsLines) {
  const std::vector<Series> lines = {{"", kBlue, {{1, -2}, {3, 5}}}, {"", kBlue, {}}, {"", kBlue, {{-4, 0}}}};
  EXPECT_EQ(extent(lines), std::pair(-2.0, 5.0));
  EXPECT_EQ(extent(lines, &Point::first), std::pair(-4.0, 3.0));
  EXPECT_EQ(extent(std::span(lines).subspan(1, 1)), std::nullopt);
}

TEST_F(TrainLenet, CurvesLeaveOutWhatIsNotFinite) {
  Curves curves(place("plot.svg"));
  curves.started({.application = "test", .settings = {}});
  for (int step = 1; step <= 3; ++step) curves.stepped({.step = step, .loss = step == 2 ? HUGE_VAL : 1.0 / step});
  curves.evaluated({.step = 3, .loss = HUGE_VAL});
  const std::string svg = read_file(place("plot.svg"));
  EXPECT_TRUE(well_formed(svg));
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Curves, SmoothingFollowsATrendWithoutDelayAndEvensNoiseOut) {
  Curves::Points trend, noise;
  for (int i = 0; i < 2000; ++i) {
    trend.emplace_back(i + 1, 5 - 0.002 * i);
    noise.emplace_back(i + 1, 1 + (i % 2 == 0 ? 0.5 : -0.5));
  }
  const Curves::Points same = smooth(trend), even = smooth(noise);
  for (size_t i = 0; i < trend.size(); ++i) {
    EXPECT_EQ(same[i].first, trend[i].first);
    EXPECT_NEAR(same[i].second, trend[i].second, 1e-9);
    EXPECT_NEAR(even[i].second, 1, 0.1);
  }
  EXPECT_TRUE(smooth({}).empty());
  EXPECT_EQ(smooth({{7, 3}}), (Curves::Points{{7, 3}}));
}

TEST_F(TrainLenet, AResumedPlotShowsTheWholeRun) {
  const auto shown = [&] {  // the curves in the file: [training, test] of the loss, of the score
    const std::string svg = read_file(place("plot.svg"));
    EXPECT_TRUE(well_formed(svg));
    const size_t begin = svg.find("<metadata>") + 10;
    return nlohmann::json::parse(svg.substr(begin, svg.find("</metadata>") - begin));
  };
  const std::vector<Score> scores = {{.name = "accuracy"}};
  const auto draw = [&](Curves& curves, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step)
      curves.stepped({.step = step, .loss = 1.0 / static_cast<double>(step), .scores = {0.5}});
  };
  {
    Curves curves(place("plot.svg"));
    curves.started({.application = "test", .settings = {}, .scores = scores});
    draw(curves, 1, 3);
    curves.evaluated({.step = 3, .scores = {0.25}, .loss = 0.5});
    curves.checkpointing();
    draw(curves, 4, 5);
    curves.evaluated({.step = 5, .scores = {0.75}, .loss = 0.25});
  }
  TrainSettings settings;
  settings.resume = true;
  Curves curves(place("plot.svg"));
  curves.started({.application = "test", .settings = settings, .scores = scores, .first_step = 3});
  curves.evaluated({.step = 3, .scores = {0.25}, .loss = 0.5});
  draw(curves, 4, 4);
  curves.checkpointing();
  const nlohmann::json loss = {{{1, 1}, {2, 0.5}, {3, 0.333333}, {4, 0.25}}, {{3, 0.5}}};
  const nlohmann::json score = {{{1, 50}, {2, 50}, {3, 50}, {4, 50}}, {{3, 25}}};
  EXPECT_EQ(shown(), (nlohmann::json{loss, score}));

  write_file(place("plot.svg"), "<svg><metadata>of another program</metadata></svg>");
  Curves after(place("plot.svg"));
  after.started({.application = "test", .settings = settings, .scores = scores, .first_step = 3});
  draw(after, 4, 4);
  after.checkpointing();
  EXPECT_EQ(shown()[0][0], (nlohmann::json{{4, 0.25}}));
}

TEST_F(TrainLenet, PlotsAndWritesEventFiles) {
  train({"--iterations", "15", "--plot", place("plot.svg"), "--tensorboard", place("events")});
  const std::string svg = read_file(place("plot.svg"));
  EXPECT_TRUE(well_formed(svg));
  for (const char* text : {"Loss", "Accuracy", "test", "step"}) EXPECT_NE(svg.find(text), std::string::npos) << text;
  const auto entry = *std::filesystem::directory_iterator(place("events"));
  const std::string events = read_file(entry.path());
  for (const char* tag : {"train/loss", "train/lr", "eval/accuracy", "eval/loss"})
    EXPECT_NE(events.find(tag), std::string::npos) << tag;
}

}  // namespace
}  // namespace tern
