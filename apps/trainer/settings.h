#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tern/data/transforms.h"
#include "tern/dist/codec/codec.h"

namespace tern {

/// Everything a training run is told; each field is the flag of its name, and its value here that flag's default. A
/// plain value.
struct TrainSettings {
  std::string data = "digits";
  std::string data_dir = {};
  int64_t resize = 256;      ///< pixels
  std::string fit = "crop";  ///< see Fit
  std::string cache = {};
  std::optional<int64_t> epochs = {};  ///< 1 where neither is given
  std::optional<int64_t> iterations = {};
  int64_t batch_size = 64;
  int64_t eval_batch_size = 250;
  bool shuffle = true;
  int64_t loader_threads = 1;

  std::string optimizer = "momentum";
  double lr = 0.01;
  std::string lr_schedule = "constant";
  double lr_power = 0.5;
  std::vector<double> lr_steps = {};
  int64_t warmup = 0;
  double warmup_lr = 0;
  double momentum = 0.9;
  double weight_decay = 0;
  double ema_decay = 0;
  double label_smoothing = 0;
  double clip_norm = 0;

  std::optional<int64_t> workers = {};  ///< ranks that train together; unset: no distributed training
  std::string transport = {};           ///< inproc, or socket or nccl where the ranks are processes
  std::optional<int64_t> rank = {}, world_size = {};
  std::string master = {}, bind = {}, link = {};
  double dead_after = 5;  ///< seconds
  int64_t max_restarts = 0;
  std::string method = "data-parallel";
  int64_t local_steps = 10;
  std::string ist_scope = "fc";
  std::string ist_momentum = "travel";
  std::string ist_eval = "calibrated";
  std::optional<int64_t> calibrate_batches = {};
  std::string codec = "none";
  std::string exchange = {};  ///< empty: see default_exchange
  int64_t min_compress = 0;
  std::string keep_float = {};
  bool weight_decay_in_gradient = false;
  bool overlap = false;
  int64_t check_every = 100;

  int64_t seed = 1;
  int64_t threads = 0;  ///< 0: one per core
  std::string device = "cpu";
  std::string precision = "fp32";
  bool deterministic = false;
  bool cuda_graph = true;
  bool profile = false;
  double grace = 60;  ///< seconds

  std::string log = {}, tensorboard = {}, plot = {};
  bool quiet = false;

  std::string checkpoint = {};
  int64_t checkpoint_every = 0;  ///< 0: after each epoch
  bool resume = false;
  std::string init = {}, save = {};

  bool eval_only = false;
  std::vector<std::string> predict = {};

  std::map<std::string, std::string> choices = {};                        ///< of the application's own flags
  std::map<std::string, int64_t> counts = {};                             ///< the same
  std::vector<CodecEntry> codecs = {};                                    ///< of the application's own
  std::function<void(Transform&, const ImageSpec& images)> augment = {};  ///< likewise; see Application
};

}  // namespace tern
