#include "tern/apps/advise/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tern/apps/advise/convergence.h"
#include "tern/apps/advise/measure.h"
#include "tern/dist/comm/in_process.h"
#include "tern/trainer/rank/machine.h"

namespace tern::advise {
namespace {

using namespace trainer;

constexpr double kPays = 1.05;  ///< smallest gain that matters in practice

double milliseconds(double seconds) { return 1e3 * seconds; }

std::string rate_text(double bytes_per_second) {
  const double megabits = 8e-6 * bytes_per_second;
  return megabits >= 1000 ? fmt::format("{:g} Gbit/s", megabits / 1000) : fmt::format("{:g} Mbit/s", megabits);
}

/// "1 Gbit/s, 0.05 ms"
std::string link_text(const Link& link) {
  const double latency = milliseconds(std::chrono::duration<double>(link.latency).count());
  return rate_text(link.bytes_per_second) + (latency > 0 ? fmt::format(", {:g} ms", latency) : ", no latency");
}

double hop_of(const Measured& pass) { return pass.here.hop; }
double byte_of(const Measured& pass) { return pass.here.byte; }

/// "9.00 to 11.00", in milliseconds
std::string range_text(const std::vector<double>& seconds) {
  const auto [least, most] = std::ranges::minmax(seconds);
  return fmt::format("{:.2f} to {:.2f}", milliseconds(least), milliseconds(most));
}

std::string method_name(const Way& way) {
  return to_string(way.method) + std::string(way.scope == SubnetScope::filters ? " filters" : "");
}

/// "-" for a method that has its own codec.
std::string codec_name(const Way& way) { return way.takes_exchange() ? way.codec : "-"; }

std::string exchange_name(const Way& way) { return way.overlap ? way.exchange + " --overlap" : way.exchange; }

/// "ternary by allgather"; of PowerSGD, which has no codec, "powersgd"
std::string codes_name(const Way& way) {
  return way.has_power_sgd() ? exchange_name(way) : fmt::format("{} by {}", way.codec, exchange_name(way));
}

std::string name_of(const Way& way) {
  return way.takes_exchange() ? method_name(way) + ' ' + codes_name(way) : method_name(way);
}

/// Whether two ways send the same codes, perhaps by other exchanges or at other times.
bool send_the_same(const Way& a, const Way& b) {
  return a.method == b.method && a.scope == b.scope && a.codec == b.codec && a.has_power_sgd() == b.has_power_sgd();
}

/// The fastest forecast of each method and codec. `forecasts` are sorted.
std::vector<Forecast> fastest(const std::vector<Forecast>& forecasts) {
  std::vector<Forecast> first;
  for (const Forecast& forecast : forecasts)
    if (std::ranges::none_of(first, [&](const Forecast& f) { return send_the_same(f.way, forecast.way); }))
      first.push_back(forecast);
  return first;
}

/// "1.34"; "-" if no run measured it; "never" if the run did not come to the target
std::string steps_text(const std::string& network, const Way& way, int64_t local_steps) {
  const auto convergence = measured_convergence(network, way, local_steps);
  if (!convergence) return "-";
  return std::isfinite(convergence->steps) ? fmt::format("{:.2f}", convergence->steps) : "never";
}

std::string table(const std::string& network, const std::vector<Forecast>& forecasts, const AdviceOptions& options) {
  std::string text =
      fmt::format("  {:<14} {:<30} {:<15} {:<8} {:>9}  {:<20} {:>8} {:>7} {:>10}   {:>8} {:>8} {:>8} {:>8}\n", "method",
                  "codec", "exchange", "overlap", "step ms", "of the passes", "images/s", "steps x", "MB sent",
                  "compute", "encode", "network", "decode");
  const Forecast& best = forecasts.front();
  bool any_tied = false;
  for (const Forecast& forecast : forecasts) {
    const bool tied = &forecast != &best && !best.surely_faster(forecast);
    any_tied = any_tied || tied;
    const auto& [encode, wait, decode] = forecast.exchange;
    text += fmt::format(
        "{} {:<14} {:<30} {:<15} {:<8} {:>9.2f}  {:<20} {:>8.0f} {:>7} {:>10.3f}   {:>8.2f} {:>8.2f} {:>8.2f} "
        "{:>8.2f}\n",
        tied ? '=' : ' ', method_name(forecast.way), codec_name(forecast.way),
        forecast.way.takes_exchange() ? forecast.way.exchange : "-", forecast.way.overlap ? "yes" : "-",
        milliseconds(forecast.seconds()), range_text(forecast.passes),
        static_cast<double>(options.batch_size) / forecast.seconds(),
        steps_text(network, forecast.way, options.local_steps), forecast.sent / 1e6, milliseconds(forecast.compute),
        milliseconds(encode), milliseconds(wait), milliseconds(decode));
  }
  return any_tied ? text + "=: within the noise of the first, at least as fast in one of the passes\n" : text;
}

/// The fastest forecast of a way that `wanted` accepts; null if there is none.
template <class Wanted>
const Forecast* first(const std::vector<Forecast>& forecasts, const Wanted& wanted) {
  const auto found = std::ranges::find_if(forecasts, [&](const Forecast& forecast) { return wanted(forecast.way); });
  return found == forecasts.end() ? nullptr : &*found;
}

/// The way that has the accuracy of floats in the least time, of those that keep it. Floats are one of them. `network`
/// has measured runs.
const Forecast& soonest(const std::string& network, const std::vector<Forecast>& forecasts, int64_t local_steps) {
  return *std::ranges::min_element(forecasts, {}, [&](const Forecast& forecast) {
    const auto convergence = measured_convergence(network, forecast.way, local_steps);
    return convergence && convergence->keeps_accuracy() ? convergence->steps * forecast.seconds()
                                                        : std::numeric_limits<double>::infinity();
  });
}

std::string verdict(const std::vector<Forecast>& forecasts) {
  const Forecast* floats =
      first(forecasts, [](const Way& way) { return way.averages_every_step() && way.sends_floats(); });
  const Forecast* codes =
      first(forecasts, [](const Way& way) { return way.averages_every_step() && !way.sends_floats(); });
  const double gain = floats->seconds() / codes->seconds();
  if (gain < kPays)
    return fmt::format(
        "Compression does not pay here: a step with float gradients takes {:.2f} ms, {:.2f} of it on the network. The "
        "best\ncodes ({}) make it {:.2f} times as fast.\n",
        milliseconds(floats->seconds()), milliseconds(floats->exchange.wait), name_of(codes->way), gain);
  if (!codes->surely_faster(*floats))
    return fmt::format(
        "Whether compression pays is within the noise: a step with float gradients takes {:.2f} ms ({}), and with the "
        "best\ncodes ({}) {:.2f} ms ({}).\n",
        milliseconds(floats->seconds()), range_text(floats->passes), name_of(codes->way),
        milliseconds(codes->seconds()), range_text(codes->passes));
  return fmt::format("Compression pays: {} makes a step {:.1f} times as fast as float gradients by {}.\n",
                     name_of(codes->way), gain, exchange_name(floats->way));
}

std::string scale_table(const std::vector<ScalePoint>& scale, double images) {
  std::string text = fmt::format(
      "\nMore workers, each with as many images as here: images/s by data-parallel training\n\n{:>7} {:>10} {:>10}  "
      "{:>5}  by\n",
      "workers", "float32", "codes", "gain");
  bool any_tied = false;
  for (const auto& [workers, floats, codes] : scale) {
    const bool tied = !floats.surely_faster(codes) && !codes.surely_faster(floats);
    any_tied = any_tied || tied;
    text += fmt::format("{:>7} {:>10.0f} {:>10.0f} {}{:>5.2f}  {}, floats by {}\n", workers,
                        images * workers / floats.seconds(), images * workers / codes.seconds(), tied ? '=' : ' ',
                        floats.seconds() / codes.seconds(), codes_name(codes.way), exchange_name(floats.way));
  }
  return any_tied ? text + "=: within the noise\n" : text;
}

std::string measured_text(const AdviceOptions& options, const std::vector<Measured>& measured) {
  std::vector<double> compute;
  for (const Measured& pass : measured) compute.push_back(pass.compute);
  return fmt::format(
      "measured, {} times: {}, {} with {}: a step computes for {:.2f} ms ({}); a message takes {:.3f} ms plus its "
      "time on the link\n",
      measured.size(), processor_name(),
      options.ranks_per_machine == 1 ? "1 rank" : fmt::format("{} ranks side by side", options.ranks_per_machine),
      options.threads == 1 ? "1 thread" : fmt::format("{} threads", options.threads), milliseconds(median(compute)),
      range_text(compute), milliseconds(median(measured, hop_of)));
}

/// A note if the link is faster than this machine copies between its ranks; else empty.
std::string slower_copying(const Link& link, const std::vector<Measured>& measured) {
  const double byte = median(measured, byte_of);
  if (byte * link.bytes_per_second <= 1) return "";
  return fmt::format("; this machine copies only {:.1f} Gbit/s from rank to rank,\n  so the times below use that rate",
                     8e-9 / byte);
}

}  // namespace

std::string training_command(const networks::Variant& variant, const AdviceOptions& options, const Way& way) {
  std::string text = "./dev run";
  for (const std::string& word : variant.words()) text += ' ' + word;
  text += fmt::format(" --batch-size {} --workers {}", options.batch_size, options.workers);
  const TrainSettings& defaults = variant.network.recipe.defaults;
  if (way.method == TrainingMethod::demo) {
    text += " --method demo --optimizer sgd --lr 0.001";
    if (!defaults.group.empty()) text += " --group '*:weight-decay=0'";  // replaces the network's own groups
    return defaults.clip_norm > 0 ? text + " --clip-norm 0" : text;
  }
  if (!way.averages_every_step()) {
    text += fmt::format(" --method {} --local-steps {}", to_string(way.method), options.local_steps);
    if (defaults.ema_decay > 0) text += " --ema-decay 0";  // each worker has its own model
  }
  if (!way.takes_exchange()) return text;
  if (way.codec != traits_of(way.method).codec) text += " --codec " + way.codec;
  if (way.scope == SubnetScope::filters) text += " --ist-scope filters";
  text += " --exchange " + way.exchange;
  return way.overlap ? text + " --overlap" : text;
}

std::string advice_page(const networks::Variant& variant, const AdviceOptions& options,
                        const std::vector<Measured>& measured, const std::vector<Forecast>& forecasts,
                        const std::vector<ScalePoint>& scale) {
  const int64_t images = options.batch_size / options.workers;
  std::string text = fmt::format("{}, {} workers, {} images a step ({} each)\nstated: each has a cable of {}{}\n",
                                 variant.preset.name, options.workers, options.batch_size, images,
                                 link_text(options.link), slower_copying(options.link, measured));
  text += measured_text(options, measured) + '\n';
  const std::string& network = variant.network.name;
  const std::string measured_on = measured_task(network);
  text += table(network, options.all ? forecasts : fastest(forecasts), options);
  text += fmt::format("steps x: the steps to {:.0f} % of the accuracy of floats, over the steps of floats; ",
                      100 * kTarget);
  text += measured_on.empty() ? "`reproduce grid` measured\nthem for lenet and airbench only.\n"
                              : "`reproduce grid` measured\nthem for " + measured_on +
                                    " with 4 workers; -: not measured; never: not within the run.\n";
  if (!options.all) text += "Each method and codec has one row, its fastest exchange; --all shows the others.\n";
  text += '\n' + verdict(forecasts);
  const Forecast& best = forecasts.front();
  const Forecast* averaged = first(forecasts, [](const Way& way) { return way.averages_every_step(); });
  const auto recommend = [&](const std::string& as, const Forecast& forecast) {
    text += fmt::format("{}: {}\n  {}\n", as, name_of(forecast.way), training_command(variant, options, forecast.way));
  };
  text += '\n';
  recommend("fastest", best);
  if (averaged != &best) recommend("fastest that averages gradients in every step", *averaged);
  if (!measured_on.empty()) {
    const std::string most = fmt::format(
        "soonest at {:.0f} % of the accuracy of floats, by steps x, without losing {} points", 100 * kTarget, kLosable);
    const Forecast& accurate = soonest(network, forecasts, options.local_steps);
    if (&accurate == &best || &accurate == averaged)
      text +=
          fmt::format("{}: the {} of these, {}\n", most, &accurate == &best ? "first" : "last", name_of(accurate.way));
    else
      recommend(most, accurate);
  }
  if (options.workers > kMaxRanks)
    text += fmt::format("(a job has {} ranks at most today; these times are for more ranks)\n", kMaxRanks);
  text += scale_table(scale, static_cast<double>(images));
  return text +
         fmt::format(
             "\nAssumed: each worker is as fast as what was measured here. It has a full-duplex cable of that "
             "rate to a switch, and the\nswitch is never a limit. With overlap, one more thread codes "
             "and sends gradients while the backward pass goes on,\non the same cores; the network column is then "
             "what the step waits for that thread. MB sent are the mean over\nthe workers. local-sgd, diloco, "
             "sparseloco, noloco and ist exchange every {} steps, and the time of a step includes its share\nof this. "
             "Codes and methods can need more steps with another network or data set: only a run shows it.\n",
             options.local_steps);
}

}  // namespace tern::advise
