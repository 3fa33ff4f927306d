#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/measured_steps.h"
#include "tern/core/error.h"
#include "tern/dist/cost/gpu_cluster.h"
#include "tern/networks/alexnet.h"
#include "tern/networks/googlenet.h"
#include "tern/networks/vgg.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

constexpr int64_t kMostGpus = 512, kGpusOfNode = 4;
constexpr double kTernarySaving = 16;  ///< 32 bits / 2 bits
constexpr double kNoCopy = std::numeric_limits<double>::infinity();

/// A cluster of Figure 5. The paper prints no values for C of equations 27 to 30; these are the nominal values of such
/// hardware. In weak scaling, the copies to the CPU are part of the profiled step.
struct Cluster {
  const char* panel;
  const char* name;
  const char* file;
  GpuCluster hardware;
  double speed;  ///< speed of its GPU relative to a GTX 1080
};
constexpr Cluster kClusters[] = {
    {"a",
     "128 nodes of 4 GTX 1080 at a PCIe switch, 1 Gbit/s Ethernet",
     "ethernet.svg",
     {.gpu_bandwidth = 10e9, .cpu_bandwidth = kNoCopy, .network_bandwidth = 125e6, .network_latency = 50e-6},
     1},
    {"b",
     "128 nodes of 4 Tesla P100 by NVLink, 100 Gbit/s InfiniBand",
     "infiniband.svg",
     {.gpu_bandwidth = 20e9, .cpu_bandwidth = kNoCopy, .network_bandwidth = 12.5e9, .network_latency = 2e-6},
     10.6 / 8.9},
};

/// A network of Figure 5, with the duration of its step on one GPU.
struct Network {
  const char* name;
  const char* key;  ///< its name in a file of measured steps
  int64_t (*parameters)();
  double images;                 ///< per GPU and step, as in the paper or as measured
  double seconds;                ///< on a GTX 1080, or as measured
  std::string measured_by = {};  ///< "tern-graph, bf16", if the step was measured; else empty

  double bytes() const { return 4 * static_cast<double>(parameters()); }
};
constexpr int64_t kClasses = 1001;  ///< of the authors' code: ImageNet's, and one for the background
/// Forward and backward pass in TensorFlow on a Titan X (soumith/convnet-benchmarks: 81 ms for 128 images, 445 ms for
/// 128, 540 ms for 64). Scaled to the paper's batches and to a GTX 1080, which is 1.125 times as fast
/// (jcjohnson/cnn-benchmarks).
std::vector<Network> published_networks() {
  return {
      {"AlexNet", "alexnet", [] { return networks::AlexNet({.classes = kClasses}).parameter_count(); }, 128,
       0.081 / 1.125},
      {"GoogLeNet", "googlenet", [] { return networks::GoogLeNet({.classes = kClasses}).parameter_count(); }, 64,
       0.445 / 2 / 1.125},
      {"VggNet-A", "vgg-a",
       [] { return networks::Vgg({.norm = networks::VggNorm::convolutions, .classes = kClasses}).parameter_count(); },
       32, 0.540 / 2 / 1.125}};
}

/// Takes the steps of the networks that were measured.
void take_measured(const MeasuredSteps& measured, std::vector<Network>& networks) {
  for (Network& network : networks) {
    const MeasuredStep* const step = measured.fastest(network.key);
    if (step == nullptr) continue;
    network.images = static_cast<double>(step->images);
    network.seconds = step->seconds;
    network.measured_by = join({step->way, ", ", step->math});
  }
}

GpuCluster with_gpus(GpuCluster hardware, int64_t gpus) {
  hardware.gpus = std::min(gpus, kGpusOfNode);
  hardware.machines = gpus / hardware.gpus;
  return hardware;
}

/// Images per second for each kind of gradients.
struct Throughput {
  double floats, ternary, growing;
};

Throughput throughput(const GpuCluster& hardware, const ProfiledStep& step) {
  const auto with = [&](const BytesOfSum& bytes) { return weak_scaling_throughput(hardware, step, bytes); };
  return {with(constant_bytes(step.gradient_bytes)), with(constant_bytes(step.gradient_bytes / kTernarySaving)),
          with(ternary_sum_bytes(step.gradient_bytes / 4))};
}

Throughput throughput(const Cluster& cluster, const Network& network, int64_t gpus) {
  const double speed = network.measured_by.empty() ? cluster.speed : 1;  // a measured GPU is in both clusters
  return throughput(with_gpus(cluster.hardware, gpus),
                    {.seconds = network.seconds / speed, .images = network.images, .gradient_bytes = network.bytes()});
}

using Networks = std::vector<Network>;

std::string table(const Cluster& cluster, const Networks& networks) {
  std::vector<std::vector<std::string>> rows = {{"GPUs"}};
  for (const Network& network : networks)
    for (const char* kind : {"float32", "TernGrad", "gain"}) rows.front().push_back(join({network.name, ", ", kind}));
  for (int64_t gpus = 1; gpus <= kMostGpus; gpus *= 2) {
    std::vector<std::string>& row = rows.emplace_back(std::vector{std::to_string(gpus)});
    for (const Network& network : networks) {
      const Throughput found = throughput(cluster, network, gpus);
      row.push_back(fmt::format("{:.0f}", found.floats));
      row.push_back(fmt::format("{:.0f}", found.ternary));
      row.push_back(fmt::format("{:.2f}", found.ternary / found.floats));
    }
  }
  return markdown_table(rows);
}

std::string csv(const Networks& networks) {
  std::string text = "cluster,network,gpus,gradients,images_per_second\n";
  for (const Cluster& cluster : kClusters)
    for (const Network& network : networks)
      for (int64_t gpus = 1; gpus <= kMostGpus; gpus *= 2) {
        const auto [floats, ternary, growing] = throughput(cluster, network, gpus);
        for (const auto& [kind, value] : {std::pair{"float32", floats}, {"ternary", ternary}, {"growing", growing}})
          text += fmt::format("{},{},{},{},{:.1f}\n", cluster.panel, network.name, gpus, kind, value);
      }
  return text;
}

std::string figure(const Cluster& cluster, const Networks& networks) {
  std::vector<Chart> charts;
  for (const Network& network : networks) {
    Series lines[] = {{.label = "float32", .color = kBlue, .points = {}, .markers = true},
                      {.label = "TernGrad", .color = kOrange, .points = {}, .markers = true},
                      {.label = "TernGrad, sums of growing levels", .color = kOrange, .points = {}, .opacity = 0.45}};
    Chart chart = {.title = join({network.name, ": images/s"}), .x_label = "GPUs", .series = {}};
    chart.y_scale = Scale::logarithmic;
    for (int64_t gpus = 1; gpus <= kMostGpus; gpus *= 2) {
      const auto x = static_cast<double>(chart.x_ticks.size());
      const auto [floats, ternary, growing] = throughput(cluster, network, gpus);
      lines[0].points.emplace_back(x, floats);
      lines[1].points.emplace_back(x, ternary);
      lines[2].points.emplace_back(x, growing);
      chart.x_ticks.emplace_back(x, std::to_string(gpus));
    }
    chart.series.assign(std::begin(lines), std::end(lines));
    charts.push_back(std::move(chart));
  }
  return draw_charts(join({"TernGrad, Figure 5 (", cluster.panel, "): training throughput"}),
                     join({cluster.name, " · weak scaling, equation 30 · computed, on assumptions"}), charts);
}

/// A gain that the paper states in its text.
struct Claim {
  const char* text;
  double paper;
  Throughput here;

  double gain() const { return here.ternary / here.floats; }
};

std::vector<Claim> claims(const Networks& networks) {
  return {{"AlexNet, 8 GPUs, 1 Gbit/s", 3.04, throughput(kClusters[0], networks[0], 8)},
          {"VggNet-A, 128 nodes, 100 Gbit/s", 2, throughput(kClusters[1], networks[2], kMostGpus)}};
}

std::string claims_table(const Networks& networks) {
  std::vector<std::vector<std::string>> rows = {
      {"gain of TernGrad", "the paper's", "here", "difference", "with growing levels", "difference"}};
  for (const Claim& claim : claims(networks)) {
    const double growing = claim.here.growing / claim.here.floats;
    rows.push_back({claim.text, fmt::format("{:g}", claim.paper), fmt::format("{:.2f}", claim.gain()),
                    fmt::format("{:+.2f}", claim.gain() - claim.paper), fmt::format("{:.2f}", growing),
                    fmt::format("{:+.2f}", growing - claim.paper)});
  }
  return markdown_table(rows);
}

std::string sensitivity(const Networks& networks) {
  std::vector<std::vector<std::string>> rows = {{"T(1, 1, 128), s", "gain of TernGrad"}};
  GpuCluster hardware = with_gpus(kClusters[0].hardware, 8);
  hardware.network_latency = 0;
  for (const double seconds : {0.1, 0.2, 0.4, 0.8}) {
    const Throughput found =
        throughput(hardware, {.seconds = seconds, .images = 128, .gradient_bytes = networks[0].bytes()});
    rows.push_back({fmt::format("{:g}", seconds), fmt::format("{:.2f}", found.ternary / found.floats)});
  }
  return markdown_table(rows);
}

class TernGradFigure5 final : public Experiment {
 public:
  /// `steps` is a file of measured steps; empty: the published ones.
  explicit TernGradFigure5(const std::string& steps) : networks_(published_networks()) {
    if (steps.empty()) return;
    const MeasuredSteps measured = read_measured_steps(steps);
    take_measured(measured, networks_);
    device_ = measured.device;
    std::string keys;
    for (const Network& network : networks_) keys += (keys.empty() ? "" : ", ") + std::string(network.key);
    check_input(std::ranges::any_of(networks_, [](const Network& network) { return !network.measured_by.empty(); }),
                "--steps: ", steps, " has none of ", keys, "; its first row is of ", measured.steps.front().network);
  }

  std::vector<Run> runs() const override { return {}; }
  Report report(const Results&) const override {
    std::string text =
        "This figure is computed, not measured. So is the paper's own figure. Both use the paper's performance model "
        "(Appendix B, equation 30, weak scaling), which sums gradients pair by pair. The paper prints neither "
        "bandwidths nor profiled times. These are assumed here:\n\n- (a) 10 GB/s between GPUs, 125 MB/s and 50 µs "
        "between nodes; (b) 20 GB/s, 12.5 GB/s and 2 µs.\n- A step of one GPU: ";
    for (const Network& network : networks_)
      text += fmt::format("{}{} {:.4g} ms ({:.0f} images, {:.0f} MB of gradients, {})",
                          &network == &networks_.front() ? "" : ", ", network.name, 1e3 * network.seconds,
                          network.images, network.bytes() / 1e6,
                          network.measured_by.empty() ? "published" : "measured: " + network.measured_by);
    if (!device_.empty())
      text += fmt::format(". The measured steps are from `--steps`, on {}; that GPU is in both clusters", device_);
    text += fmt::format(
        ". Public benchmarks of 2016 had the published times for TensorFlow, here for a GTX 1080 "
        "(soumith/convnet-benchmarks, jcjohnson/cnn-benchmarks). A P100 counts as {:.2f} times as fast, the ratio of "
        "the peak speeds.\n- TernGrad has 2 bits for each element that has 32 as a float, as in the paper. Sums of k "
        "ternary gradients need more, "
        "⌈log2(2k + 1)⌉ bits; the pale lines show this. Coding takes no time here.\n\n**The gains are not the "
        "paper's**: AlexNet's on 8 GPUs is {:.1f} times as high (VggNet-A's \"about 2\" counts as 2).\n\n{}",
        kClusters[1].speed, claims(networks_).front().gain() / claims(networks_).front().paper,
        claims_table(networks_));
    text += "\nThe gain depends most on how long a GPU computes. For AlexNet on 8 GPUs of (a):\n\n" +
            sensitivity(networks_);
    Report report = {.text = std::move(text), .figures = {}, .tables = {{"throughput.csv", csv(networks_)}}};
    for (const Cluster& cluster : kClusters) {
      report.text +=
          fmt::format("\n## ({}) {}\n\nImages a second:\n\n{}", cluster.panel, cluster.name, table(cluster, networks_));
      report.figures[cluster.file] = figure(cluster, networks_);
    }
    return report;
  }

 private:
  Networks networks_;
  std::string device_;
};

std::unique_ptr<Experiment> make_experiment(const ExperimentOptions& options) {
  const bool plain = options.data.empty() && options.data_dir.empty() && !options.iterations && !options.seeds &&
                     options.workers.empty() && !options.quick;
  check_input(
      plain,
      "terngrad-fig5 is computed: --data, --data-dir, --iterations, --seeds, --workers and --quick would change "
      "nothing");
  return std::make_unique<TernGradFigure5>(options.steps);
}

}  // namespace

ExperimentEntry terngrad_fig5() {
  return {.name = "terngrad-fig5",
          .title = "TernGrad, Figure 5: training throughput on two clusters, up to 512 GPUs",
          .data = "none",
          .time = "a moment",
          .takes_steps = true,
          .make = make_experiment};
}

}  // namespace tern::reproduce
