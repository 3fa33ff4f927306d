#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tern/data/image_folder.h"
#include "tern/data/transforms.h"
#include "tern/dist/codec/codec.h"
#include "tern/dist/comm/wire.h"
#include "tern/dist/methods/independent_subnets.h"
#include "tern/trainer/dataset_entry.h"

namespace tern {

class Task;

// Settings that are a choice among a few words. `words_of` lists the words in the order of the enumerators.

template <size_t kCount>
using Words = std::array<std::string_view, kCount>;

/// --optimizer
enum class UpdateRule : uint8_t { sgd, momentum, nesterov, adam, adamw, muon };
constexpr Words<6> words_of(UpdateRule) { return {"sgd", "momentum", "nesterov", "adam", "adamw", "muon"}; }

constexpr bool has_momentum(UpdateRule rule) {
  return rule == UpdateRule::momentum || rule == UpdateRule::nesterov || rule == UpdateRule::muon;
}

/// --lr-schedule
enum class LrSchedule : uint8_t { constant, poly, step, cosine };
constexpr Words<4> words_of(LrSchedule) { return {"constant", "poly", "step", "cosine"}; }

/// --transport: threads of one process, or processes that use TCP, TCP and NCCL, or MPI.
enum class RankTransport : uint8_t { inproc, socket, nccl, mpi };
constexpr Words<4> words_of(RankTransport) { return {"inproc", "socket", "nccl", "mpi"}; }

/// --wire
constexpr Words<3> words_of(Wire) { return {"plain", "mac", "tls"}; }

/// Defaults of --device and --codec, and the --device that lets the trainer choose a GPU.
inline constexpr const char *kCpu = "cpu", *kAnyGpu = "cuda", *kFloats = "none";

/// --method
enum class TrainingMethod : uint8_t { data_parallel, local_sgd, diloco, sparseloco, noloco, demo, ist };

/// What a method means for the trainer's flags.
struct MethodTraits {
  std::string_view word;           ///< of --method
  bool every_step = false;         ///< ranks exchange in each step: then they have one model
  std::string_view own_code = {};  ///< "sends floats"; empty if it takes --codec and --exchange
  const char* codec = kFloats;     ///< default of --codec
  std::optional<double> outer_lr = {}, outer_momentum = {};  ///< defaults of these flags; unset: it does not take them
};
/// One row for each method, in the order of the enumerators. `make_method` has the methods' constructors.
inline constexpr MethodTraits kMethods[] = {
    {.word = "data-parallel", .every_step = true},
    {.word = "local-sgd"},
    {.word = "diloco", .outer_lr = 0.7, .outer_momentum = 0.9},
    {.word = "sparseloco", .codec = "topk-block:decay=0.95", .outer_lr = 1},
    {.word = "noloco", .own_code = "sends floats", .outer_lr = 0.7, .outer_momentum = 0.5},
    {.word = "demo", .every_step = true, .own_code = "has its own code"},
    {.word = "ist"}};
constexpr const MethodTraits& traits_of(TrainingMethod method) { return kMethods[static_cast<size_t>(method)]; }

constexpr Words<std::size(kMethods)> words_of(TrainingMethod) {
  Words<std::size(kMethods)> words;
  for (size_t i = 0; i < words.size(); ++i) words[i] = kMethods[i].word;
  return words;
}

/// Steps whose losses ranks on CPUs add up together, without --log-every. A method with rounds needs no message in
/// between, but after a user's signal the ranks end only at the next sum.
constexpr int64_t steps_of_a_sum(TrainingMethod method, int64_t local_steps) {
  constexpr int64_t kMost = 50;
  return traits_of(method).every_step ? 1 : std::min(local_steps, kMost);
}

/// --ist-eval: the whole model's batch-norm statistics come from training batches, or from each test batch.
enum class SubnetEvaluation : uint8_t { calibrated, batch };
constexpr Words<2> words_of(SubnetEvaluation) { return {"calibrated", "batch"}; }

/// --ist-store: whether each rank has the whole model to evaluate and save it, or never more than a slice.
enum class ModelStore : uint8_t { whole, sharded };
constexpr Words<2> words_of(ModelStore) { return {"whole", "sharded"}; }

/// --ist-download: the number format of the slices that ranks receive.
constexpr Words<3> words_of(SubnetDownload) { return {"none", "fp16", "bf16"}; }

/// --convolution
enum class ConvolutionChoice : uint8_t { automatic, direct };
constexpr Words<2> words_of(ConvolutionChoice) { return {"auto", "direct"}; }

/// --tta: test-time augmentation, the views of a test image whose outputs are averaged.
enum class TestViews : uint8_t {
  none,    ///< the image alone
  mirror,  ///< its mirror image too
  crops,   ///< also two crops that are shifted by a pixel, and their mirror images
};
constexpr Words<3> words_of(TestViews) { return {"none", "mirror", "crops"}; }

/// --precision
enum class Precision : uint8_t { fp32, tf32, bf16 };
constexpr Words<3> words_of(Precision) { return {"fp32", "tf32", "bf16"}; }

constexpr Words<2> words_of(Fit) { return {"crop", "squash"}; }
constexpr Words<3> words_of(SubnetScope) { return {"fc", "filters", "blocks"}; }
constexpr Words<2> words_of(SubnetMomentum) { return {"travel", "drop"}; }
constexpr Words<2> words_of(SubnetExchange) { return {"coordinator", "peer"}; }

/// An enum with words.
template <class E>
concept Worded = std::is_enum_v<E> && requires(E e) {
  words_of(e);
};

template <Worded E>
std::string to_string(E e) {
  return std::string(words_of(e)[static_cast<size_t>(e)]);
}

/// All settings of a training run. Each field is the flag of the same name; its value here is that flag's default. A
/// value.
struct TrainSettings {
  std::string data = "digits";
  std::string data_dir = {};
  int64_t resize = 256;  ///< pixels
  Fit fit = Fit::crop;
  std::string cache = {};
  std::optional<int64_t> epochs = {};  ///< 1 if neither is given
  std::optional<int64_t> iterations = {};
  int64_t batch_size = 64;                       ///< samples of all ranks in a step
  std::optional<int64_t> local_batch_size = {};  ///< samples of one rank in a step; unset: its share of batch_size
  int64_t accumulate = 1;
  int64_t eval_batch_size = 250;            ///< the command line takes fewer if a worker's training step has fewer
  int64_t eval_every = 0;                   ///< steps; 0: after each epoch
  std::optional<double> target_score = {};  ///< of the task's first score, as people see it: in %, if it is a share
  int64_t top = 1;
  TestViews tta = TestViews::none;
  bool shuffle = true;
  bool augmentation = true;
  int64_t loader_threads = 1;

  UpdateRule optimizer = UpdateRule::momentum;
  double lr = 0.01;
  LrSchedule lr_schedule = LrSchedule::constant;
  double lr_power = 0.5;
  std::vector<double> lr_steps = {};
  double lr_factor = 0.1;
  double warmup = 0;  ///< steps, or below 1 a share of the run
  double warmup_lr = 0;
  std::vector<std::string> group = {};  ///< as `parse_group` reads them
  double momentum = 0.9;
  int64_t muon_iterations = 5;
  bool muon_normalize = false;
  double adamw_lr = 3e-4;
  double weight_decay = 0;
  double ema_decay = 0;
  double label_smoothing = 0;
  double clip_norm = 0;

  std::optional<int64_t> workers = {};          ///< number of ranks; unset: no distributed training
  std::optional<RankTransport> transport = {};  ///< unset: inproc, or socket if the ranks are processes
  std::optional<int64_t> rank = {}, world_size = {};
  std::string master = {}, bind = {}, link = {};
  std::optional<Wire> wire = {};  ///< unset: as JoinOptions
  double dead_after = 5;          ///< seconds
  int64_t max_restarts = 0;
  TrainingMethod method = TrainingMethod::data_parallel;
  int64_t local_steps = 10;
  std::optional<double> outer_lr = {}, outer_momentum = {};  ///< unset: the method's
  int64_t fragments = 1, delay = 0;
  double mix = 0;
  SubnetScope ist_scope = SubnetScope::fc;
  SubnetMomentum ist_momentum = SubnetMomentum::drop;
  SubnetDownload ist_download = SubnetDownload::f32;
  SubnetEvaluation ist_eval = SubnetEvaluation::calibrated;
  ModelStore ist_store = ModelStore::whole;
  std::optional<int64_t> calibrate_batches = {};
  std::string codec = kFloats;
  std::string exchange = {};  ///< empty: see default_exchange
  int64_t min_compress = 0;
  std::string keep_float = {};
  bool weight_decay_in_gradient = false;
  bool overlap = false;
  int64_t stale = 0;
  int64_t check_every = 100;

  int64_t seed = 1;
  int64_t threads = 0;  ///< 0: one per core
  std::string device = kCpu;
  Precision precision = Precision::fp32;
  ConvolutionChoice convolution = ConvolutionChoice::automatic;
  bool deterministic = false;
  bool cuda_graph = true;
  bool profile = false;
  double grace = 60;  ///< seconds

  std::string log = {}, tensorboard = {}, plot = {};
  std::optional<int64_t> log_every = {};  ///< steps whose losses are read together; unset: `steps_of_a_sum`, or 1
  int64_t histograms = 0;                 ///< steps from one to the next; 0: none
  bool quiet = false;

  std::string checkpoint = {};
  int64_t checkpoint_every = 0;  ///< 0: after each epoch
  bool resume = false;
  std::string init = {}, save = {};
  bool init_partial = false;
  std::string freeze = {};  ///< a pattern of parameters' names

  bool eval_only = false;
  std::vector<std::string> predict = {};

  std::map<std::string, std::string> choices = {};  ///< application's own flags
  std::map<std::string, int64_t> counts = {};       ///< likewise
  std::set<std::string> score_flags = {};           ///< of these, those that change evaluations only
  std::vector<CodecEntry> codecs = {};              ///< the application's own codecs
  std::vector<DatasetEntry> datasets = {};          ///< all that --data accepts; {}: pictures
  std::shared_ptr<const Task> task = {};            ///< null: ImageClassification
  std::function<void(Transform&, const ImageSpec& images)> augment = {};  ///< see Application
};

}  // namespace tern
