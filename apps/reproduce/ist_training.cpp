#include "tern/apps/reproduce/ist_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/core/error.h"
#include "tern/data/speech_commands.h"
#include "tern/dist/comm/link.h"
#include "tern/networks/mlp.h"
#include "tern/networks/resnet.h"
#include "tern/networks/vgg.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

constexpr int64_t kIstBatch = 128;  ///< batch of each worker, as in the authors' code
constexpr const char* kLatency = "0.1ms";
constexpr int64_t kRankSteps = 30;  ///< of a run that measures a rank's computation

/// A network of the paper's two-layer size, trained on melodies: 4,096 numbers, 35 classes.
IstTask tones_perceptron(const ExperimentOptions& options) {
  const int64_t hidden = options.quick ? 512 : 4096;
  return {.name = "mlp",
          .title = fmt::format("MLP 4096-{}-35 on tones", hidden),
          .paper = kSpeech2,
          .program = networks::mlp().program(),
          .flags = {"--data", "tones", "--optimizer", "sgd", "--lr", "0.2"},
          .places = {},
          .scope = SubnetScope::fc,
          .rate = "1gbit",
          .images = 24'500,
          .batch = kIstBatch,
          .epochs = options.quick ? 6 : 10,
          .iterations = options.iterations,
          .shortened = true,
          .hidden = hidden};
}

/// The paper's network with `layers` linear layers for spoken words.
IstTask speech_perceptron(const ExperimentOptions& options, const DataChoice& data, int64_t layers) {
  constexpr int64_t kPaperClasses = 35;
  const TrainSettings settings = {.data = data.name, .data_dir = data.folder};
  const int64_t hidden = options.quick ? 512 : layers == 2 ? 4096 : 8192;
  const int64_t classes = describe_dataset(settings).spec.classes;
  return {.name = fmt::format("speech{}", layers),
          .title = fmt::format("MLP 4096-{}{}-{} on Speech Commands", layers == 2 ? "" : fmt::format("{}-", hidden),
                               hidden, classes),
          .paper = layers == 2 ? kSpeech2 : kSpeech3,
          .program = networks::mlp().program(),
          .flags = {"--data", data.name, "--layers", std::to_string(layers), "--optimizer", "sgd", "--lr", "0.1"},
          .places = data.places(),
          .scope = SubnetScope::fc,
          .rate = "1gbit",
          .images = load_split(settings, Split::train)->size(),
          .batch = kIstBatch,
          .epochs = options.quick ? 10 : 40,
          .iterations = options.iterations,
          .shortened = options.quick || options.iterations || classes != kPaperClasses,
          .hidden = hidden,
          .evaluates_rounds = true,
          .waits = false,
          .local_steps = 20,
          .calibrated = 4,
          .usual_workers = layers == 2 ? std::vector<int64_t>{2, 4, 8} : std::vector<int64_t>{2, 4},
          .one_seed = layers == 3};
}

/// The paper's residual network with half of its channels, which two cores can train; or a smaller one.
IstTask residual_network(const ExperimentOptions& options, const DataChoice& data) {
  const std::string depth = options.quick ? "20" : "18";
  IstTask task = {.name = "resnet" + depth,
                  .title = fmt::format("ResNet-{}{} on {}", depth, options.quick ? "" : " of half width",
                                       data.name == "cifar10" ? "CIFAR-10" : data.name),
                  .paper = kResNet18,
                  .program = networks::resnet().program(),
                  .flags = {"--data", data.name, "--depth", depth, "--lr", "0.1", "--lr-schedule", "cosine",
                            "--weight-decay", "0.0005"},
                  .places = data.places(),
                  .scope = SubnetScope::filters,
                  .rate = options.quick ? "100mbit" : "1gbit",
                  .images = data.name == "cifar10" ? 50'000 : 20'000,
                  .batch = options.quick ? kIstBatch / 2 : kIstBatch,
                  .epochs = options.quick ? 2 : 30,
                  .iterations = options.iterations,
                  .shortened = true,
                  .local_steps = 130};  // shorter rounds lose accuracy: docs/papers.md
  if (!options.quick) task.flags.insert(task.flags.end(), {"--width", "0.5"});
  return task;
}

/// The paper's convolutional network whose hidden layers IST partitions (section 3.5). The paper gives neither its
/// batch, nor its rate, nor its length.
IstTask vgg12(const ExperimentOptions& options, const DataChoice& data) {
  constexpr int64_t kPaperClasses = 21'841, kTop = 10, kVggBatch = 32;
  const TrainSettings settings = {.data = data.name, .data_dir = data.folder};
  const int64_t classes = describe_dataset(settings).spec.classes;
  const int64_t top = classes > kTop ? kTop : 1;
  return {.name = "vgg12",
          .title = fmt::format("VGG12 on pictures of {} classes{}", classes,
                               top == 1 ? "" : fmt::format(", top-{} accuracy", top)),
          .paper = kVgg12,
          .program = networks::vgg().program(),
          .flags = {"--data", data.name, "--depth", "12", "--optimizer", "sgd", "--lr", "0.1", "--top",
                    std::to_string(top)},
          .places = data.places(),
          .scope = SubnetScope::fc,
          .rate = "1gbit",
          .images = load_split(settings, Split::train)->size(),
          .batch = kVggBatch,
          .epochs = options.quick ? 2 : 40,
          .iterations = options.iterations,
          .shortened = options.quick || options.iterations || classes != kPaperClasses};
}

std::string run_name(const IstTask& task, const IstRun& run) {
  std::string name = task.name;
  name += run.method ? fmt::format("-{}-{}-workers", run.method->name(), run.workers) : "-alone";
  if (run.method && run.method->method != TrainingMethod::data_parallel)
    name += fmt::format("-every-{}-steps", run.local_steps);
  return name + fmt::format("-{}-steps-seed-{}", run.steps, run.seed);
}

}  // namespace

std::span<const IstMethod> ist_methods() {
  static constexpr IstMethod kMethods[] = {{TrainingMethod::data_parallel, "data parallel", kBlue},
                                           {TrainingMethod::local_sgd, "local SGD", kOrange},
                                           {TrainingMethod::ist, "IST", kGreen}};
  return kMethods;
}

namespace {

/// A folder is that of Speech Commands or of CIFAR-10. Tables begin with runs that read no files, so a wrong folder
/// would be noticed late.
void check_holds_cifar10(const std::string& folder) {
  try {
    const TrainSettings settings = {.data = "cifar10", .data_dir = folder};
    find_dataset(settings).load(settings, Split::test);
  } catch (const InputError& error) {
    throw InputError(join({"--data-dir: found neither Speech Commands nor CIFAR-10 in ", folder, ": ", error.what()}));
  }
}

}  // namespace

std::vector<IstTask> ist_tasks(const char* experiment, const ExperimentOptions& given) {
  const bool files = !given.data_dir.empty();
  ExperimentOptions options = given;
  if (options.data.empty() && files && holds_speech_commands(options.data_dir)) options.data = "speech-commands";
  if (options.data.empty() && files) check_holds_cifar10(options.data_dir);
  std::vector<IstTask> tasks;
  if (options.data == "tones" || options.data.empty()) tasks.push_back(tones_perceptron(options));
  if (options.data.empty() && !files) return tasks;
  const DataChoice data = choose_data(experiment, options, {"cifar10", "tones", "shapes", "speech-commands", "images"});
  if (data.name == "speech-commands")
    for (const int64_t layers : {2, 3}) tasks.push_back(speech_perceptron(options, data, layers));
  else if (data.name == "images")
    tasks.push_back(vgg12(options, data));
  else if (data.name != "tones")
    tasks.push_back(residual_network(options, data));
  return tasks;
}

std::vector<int64_t> ist_workers(const ExperimentOptions& options, std::vector<int64_t> usual) {
  if (options.workers.empty()) return usual;
  const std::set<int64_t> workers(options.workers.begin(), options.workers.end());
  check_input(*workers.begin() >= 2, "--workers: found ", *workers.begin(), ", expected 2 or more");
  return {workers.begin(), workers.end()};
}

IstRun run_of(const IstTask& task, const IstMethod* method, int64_t workers, int64_t seed) {
  return {.method = method,
          .workers = workers,
          .steps = task.steps(workers),
          .local_steps = task.local_steps,
          .seed = seed};
}

Run make_run(const IstTask& task, const IstRun& run) {
  const bool together = run.method != nullptr;
  const std::string method = together ? run.method->name() : "sgd";
  const bool shares = together && run.method->method == TrainingMethod::data_parallel, every_step = shares || !together;
  Run made = {.name = run_name(task, run),
              .program = task.program,
              .flags = task.flags,
              .places = task.places,
              .steps = run.steps,
              .columns = {{"task", task.name},
                          {"method", method},
                          {"workers", std::to_string(run.workers)},
                          {"local_steps", every_step ? "" : std::to_string(run.local_steps)},
                          {"seed", std::to_string(run.seed)}}};
  const auto add = [&](std::initializer_list<std::string> words) {
    made.flags.insert(made.flags.end(), words.begin(), words.end());
  };
  if (task.hidden > 0) add({"--hidden", std::to_string(task.hidden)});
  add({"--local-batch-size", std::to_string(task.batch)});
  add({"--iterations", std::to_string(run.steps), "--seed", std::to_string(run.seed)});
  if (task.evaluates_rounds)
    add({"--eval-every", std::to_string(shares ? std::max<int64_t>(1, run.local_steps / 4) : run.local_steps)});
  if (!together && !task.evaluates_rounds) return made;
  add({"--calibrate-batches", std::to_string(task.calibrated)});
  add({"--workers", std::to_string(run.workers), "--transport", "inproc"});
  if (!together) return made;
  add({"--method", method});
  if (task.waits) add({"--link", fmt::format("rate={},latency={}", task.rate, kLatency)});
  if (!shares) add({"--local-steps", std::to_string(run.local_steps)});
  if (run.method->method == TrainingMethod::ist) add({"--ist-scope", to_string(task.scope)});
  return made;
}

Run timed_run(const IstTask& task, const IstRun& run) {
  Run made = make_run(task, run);
  made.measures_time = task.waits;
  return made;
}

Run make_rank_run(const IstTask& task, const IstRun& run) {
  const bool ist = run.method && run.method->method == TrainingMethod::ist;
  const int64_t hidden = ist ? task.hidden / run.workers : task.hidden;
  Run made = {
      .name = fmt::format("{}-one-rank-{}-neurons", task.name, hidden),
      .program = task.program,
      .flags = task.flags,
      .places = task.places,
      .steps = kRankSteps,
      .columns = {{"task", task.name}, {"method", "one rank"}, {"workers", "1"}, {"local_steps", ""}, {"seed", "1"}},
      .measures_time = true};
  for (const auto& [name, value] : {std::pair{"--hidden", hidden},
                                    {"--local-batch-size", task.batch},
                                    {"--iterations", kRankSteps},
                                    {"--seed", int64_t{1}},
                                    {"--threads", int64_t{1}}})
    made.flags.insert(made.flags.end(), {name, std::to_string(value)});
  return made;
}

double link_seconds(const IstTask& task, const RunResult& result, const IstRun& run) {
  const double bytes = static_cast<double>(result.bytes_sent_payload.value_or(0)) / static_cast<double>(run.steps);
  return bytes / parse_link("rate=" + task.rate).bytes_per_second;
}

std::optional<double> own_machine_seconds(const Results& results, const IstTask& task, const IstRun& run) {
  const auto rank = results.find(make_rank_run(task, run).name);
  const RunResult* whole = find_result(results, task, run);
  if (rank == results.end() || !whole) return std::nullopt;
  return rank->second.step_seconds + link_seconds(task, *whole, run);
}

std::optional<double> seconds_at(const Results& results, const IstTask& task, const IstRun& run,
                                 const Crossing& point) {
  if (task.waits) return point.seconds;
  const auto step = own_machine_seconds(results, task, run);
  return step ? std::optional(*step * point.steps) : std::nullopt;
}

const RunResult* find_result(const Results& results, const IstTask& task, const IstRun& run) {
  const auto found = results.find(run_name(task, run));
  return found == results.end() ? nullptr : &found->second;
}

const CurvePoint& end_of(const std::string& name, const RunResult& result) {
  check_input(!result.curve.empty(), name,
              ": found a log without an evaluation, expected one at its end; remove the run's folder to repeat it");
  return result.curve.back();
}

std::string cell(const std::optional<double>& number, int decimals) {
  return number ? fmt::format("{:.{}f}", *number, decimals) : "–";
}

std::string ist_links(const std::vector<IstTask>& tasks) {
  std::string text;
  for (const IstTask& task : tasks)
    text += fmt::format("{}{}: link of {}", text.empty() ? "" : " · ", task.title, task.rate);
  return text;
}

std::string ist_setting(const std::vector<IstTask>& tasks) {
  std::string text;
  for (const IstTask& task : tasks) {
    text += fmt::format("- {} (the paper's: {}): batch of {} for each worker, {} training examples, ", task.title,
                        task.paper, task.batch, task.images);
    text += task.iterations ? fmt::format("{} steps", *task.iterations) : fmt::format("{} epochs", task.epochs);
    text += fmt::format(", `{}`, link of {}", fmt::join(task.flags, " "), task.rate);
    text += task.waits ? fmt::format(" and {}", kLatency) : ", for which no message waits here";
    text += fmt::format(", batch-norm statistics of {} training batches{}.\n", task.calibrated,
                        task.shortened ? "; **not the paper's run**: another size, length or data" : "");
  }
  return text + fmt::format(
                    "\nWorkers are threads of one machine and share its {} cores. So computation takes longer here "
                    "than if each worker had a machine of its own. Unless a network's line says otherwise, messages "
                    "between them wait as long as on such a link. All methods and all numbers of workers have the same "
                    "learning rate. Every method is evaluated with "
                    "batch-norm statistics of training batches, as section 3.3 describes it for IST. Running "
                    "statistics would lag behind, and more so if an epoch has fewer steps. One worker alone uses "
                    "running statistics, except for a network that is evaluated after each round.\n",
                    std::thread::hardware_concurrency());
}

std::string ist_rounds(const std::vector<IstTask>& tasks) {
  std::string text = "\nLocal SGD and IST exchange after";
  for (const IstTask& task : tasks)
    text += fmt::format("{} {} steps of {}", &task == &tasks.front() ? "" : ",", task.local_steps, task.title);
  return text + ".\n";
}

}  // namespace tern::reproduce
