#pragma once

#include <string_view>
#include <vector>

#include "tern/trainer/settings.h"

namespace tern::trainer {

/// How one setting appears to a person.
struct Flag {
  const char* group;
  const char* name;   ///< without dashes
  const char* value;  ///< what stands for the value in the help; nullptr for a switch
  const char* help;
  bool shapes_result = false;                ///< changes the losses: a resumed run must agree
  std::vector<std::string_view> words = {};  ///< the values allowed, where they are few
};

/// Calls `visit(flag, field)` for every setting: the one list behind the command line, the help, the configuration
/// file, the log and the comparison at a resume. `Settings` is TrainSettings, const or not.
template <class Settings, class Visit>
void visit_flags(Settings& s, Visit&& visit) {
  const char* group = "Data";
  visit(Flag{group, "data", "NAME", "Data set", true}, s.data);
  visit(Flag{group, "data-dir", "DIR", "Folder with the data set's files (images: or a list of files)"}, s.data_dir);
  visit(Flag{group, "resize", "N", "images: to squares of so many pixels a side", true}, s.resize);
  visit(Flag{group,
             "fit",
             "NAME",
             "images: keep proportions and crop to the middle, or squash into the square",
             true,
             {"crop", "squash"}},
        s.fit);
  visit(Flag{group, "cache", "DIR", "images: keep them in this folder, decoded and resized, for this run and others"},
        s.cache);
  visit(Flag{group, "batch-size", "N", "Images per training step", true}, s.batch_size);
  visit(Flag{group, "eval-batch-size", "N", "Images per evaluation step"}, s.eval_batch_size);
  visit(Flag{group, "shuffle", nullptr, "Visit the images in a new order each epoch", true}, s.shuffle);
  visit(Flag{group, "loader-threads", "N", "Threads that prepare batches ahead; 0: none"}, s.loader_threads);

  group = "Training";
  visit(Flag{group, "epochs", "N", "Passes over the training images (1 where neither is given)"}, s.epochs);
  visit(Flag{group, "iterations", "N", "Training steps, instead of --epochs"}, s.iterations);
  visit(Flag{group, "optimizer", "NAME", "Update rule", true, {"sgd", "momentum", "nesterov", "adam", "adamw"}},
        s.optimizer);
  visit(Flag{group, "lr", "X", "Learning rate", true}, s.lr);
  visit(Flag{group, "lr-schedule", "NAME", "Its course", true, {"constant", "poly", "step", "cosine"}}, s.lr_schedule);
  visit(Flag{group, "lr-power", "X", "poly: lr (1 - t/T)^X", true}, s.lr_power);
  visit(Flag{group, "lr-steps", "X,X,...",
             "step: a tenth of the rate from each of these steps, or shares of the run, on", true},
        s.lr_steps);
  visit(Flag{group, "warmup", "N", "Steps in which the rate rises linearly to its course", true}, s.warmup);
  visit(Flag{group, "warmup-lr", "X", "The rate in all of those steps; 0: it rises", true}, s.warmup_lr);
  visit(Flag{group, "momentum", "X", "momentum and nesterov: v <- X v + g, w <- w - lr v", true}, s.momentum);
  visit(Flag{group, "weight-decay", "X",
             "X w is added to the gradient of each parameter w that the model lets decay (adamw: decoupled)", true},
        s.weight_decay);
  visit(Flag{group, "ema-decay", "X", "Evaluate and save a moving average of the parameters; 0: off", true},
        s.ema_decay);
  visit(Flag{group, "label-smoothing", "X", "Share of each target spread over all classes", true}, s.label_smoothing);
  visit(Flag{group, "clip-norm", "X", "Scale gradients down to this norm; 0: off", true}, s.clip_norm);

  group = "Workers";
  visit(Flag{group, "workers", "N", "Ranks that train together, 1 to 64", true}, s.workers);
  visit(Flag{group,
             "transport",
             "NAME",
             "inproc: threads of one process (the default); socket: processes; nccl: processes with a GPU each, whose "
             "tensors NCCL moves: it needs --device cuda",
             false,
             {"inproc", "socket", "nccl"}},
        s.transport);
  visit(Flag{group,
             "method",
             "NAME",
             "What they exchange: gradients, models now and then, or slices of one model",
             true,
             {"data-parallel", "local-sgd", "ist"}},
        s.method);
  visit(Flag{group, "local-steps", "N", "local-sgd and ist: steps on its own between two exchanges", true},
        s.local_steps);
  visit(Flag{group,
             "ist-scope",
             "NAME",
             "ist: what is sliced, neurons between linear layers or filters of convolutions",
             true,
             {"fc", "filters"}},
        s.ist_scope);
  visit(Flag{group,
             "ist-momentum",
             "NAME",
             "ist: the optimizer's state goes with its neuron, or starts anew",
             true,
             {"travel", "drop"}},
        s.ist_momentum);
  visit(Flag{group,
             "ist-eval",
             "NAME",
             "ist: the whole model's batch-norm statistics, from training batches or each test batch's own",
             false,
             {"calibrated", "batch"}},
        s.ist_eval);
  visit(Flag{group, "calibrate-batches", "N",
             "Evaluate by batch-norm statistics of so many training batches; calibrated: 20 unless given"},
        s.calibrate_batches);
  visit(
      Flag{group, "codec", "SPEC", "How it is coded; --codec help lists the codecs, and the exchanges they take", true},
      s.codec);
  visit(Flag{group, "exchange", "NAME",
             "How it travels (ist: coordinator or peer); --codec help tells what is chosen where none is given", true},
        s.exchange);
  visit(Flag{group, "min-compress", "N", "Tensors of fewer elements travel as floats", true}, s.min_compress);
  visit(Flag{group, "keep-float", "PATTERN", "So do those whose names match: 'fc2.*'", true}, s.keep_float);
  visit(Flag{group, "weight-decay-in-gradient", nullptr, "The weight decay is coded with the gradient", true},
        s.weight_decay_in_gradient);
  visit(Flag{group, "overlap", nullptr, "Send while the backward pass goes on"}, s.overlap);
  visit(Flag{group, "check-every", "N", "Steps between comparisons of the ranks' parameters; 0: none"}, s.check_every);
  visit(Flag{group, "link", "SPEC", "Imitate a network between ranks on one machine: rate=1gbit,latency=0.2ms"},
        s.link);
  visit(Flag{group, "dead-after", "X", "Seconds of silence after which a rank counts as lost"}, s.dead_after);
  visit(Flag{group, "max-restarts", "N", "Go on from the last checkpoint where a rank was lost, N times at most"},
        s.max_restarts);
  visit(
      Flag{group, "bind", "ADDR", "Where rank 0 listens, beyond this machine only with a job token (TERN_TOKEN_FILE)"},
      s.bind);
  visit(Flag{group, "rank", "R", "This process is rank R, started by hand or by a script"}, s.rank);
  visit(Flag{group, "world-size", "N", "of N ranks"}, s.world_size);
  visit(Flag{group, "master", "ADDR:PORT", "whose rank 0 is there"}, s.master);

  group = "Machine";
  visit(Flag{group, "seed", "N", "Of every random number", true}, s.seed);
  visit(Flag{group, "threads", "N", "Threads that compute, of each worker; 0: one per core of this machine in all"},
        s.threads);
  visit(Flag{group, "device", "NAME",
             "Where to compute: cpu, cuda or cuda:N (cuda with --transport nccl: each rank takes one of the GPUs that "
             "it sees)"},
        s.device);
  visit(Flag{group,
             "precision",
             "NAME",
             "Of activations, or of products alone (tf32: CUDA); parameters stay fp32",
             true,
             {"fp32", "tf32", "bf16"}},
        s.precision);
  visit(Flag{group, "deterministic", nullptr, "CUDA: the same losses from run to run: no engine is chosen by timing"},
        s.deterministic);
  visit(Flag{group, "cuda-graph", nullptr, "CUDA, one rank: record a training step once and run it again as a whole"},
        s.cuda_graph);

  visit(Flag{group, "grace", "X",
             "Seconds without progress after which a job that a signal asked to end is killed, and the last lines of a "
             "run are lost if nobody reads them"},
        s.grace);

  group = "Record";
  visit(Flag{group, "log", "FILE", "Write JSON lines"}, s.log);
  visit(Flag{group, "tensorboard", "DIR", "Write event files for TensorBoard"}, s.tensorboard);
  visit(Flag{group, "plot", "FILE.svg", "Draw loss and accuracy"}, s.plot);
  visit(Flag{group, "profile", nullptr, "Time the operations of training steps, for a table at the end"}, s.profile);
  visit(Flag{group, "quiet", nullptr, "Print errors only"}, s.quiet);

  group = "Model";
  visit(Flag{group, "checkpoint", "DIR",
             "Checkpoint after each epoch, at the end and at Ctrl-C; keep the newest two. On several machines: one "
             "folder that all see"},
        s.checkpoint);
  visit(Flag{group, "checkpoint-every", "N", "Steps between checkpoints; 0: an epoch"}, s.checkpoint_every);
  visit(Flag{group, "resume", nullptr, "Go on from the newest checkpoint of --checkpoint DIR"}, s.resume);
  visit(Flag{group, "init", "FILE", "Start from these parameters (safetensors)"}, s.init);
  visit(Flag{group, "save", "FILE", "Write the parameters at the end (safetensors)"}, s.save);
  visit(Flag{group, "eval-only", nullptr, "Evaluate the model of --init or --resume, without training"}, s.eval_only);
  visit(Flag{group, "predict", "IMAGE...", "Classify these images with the model of --init or --resume"}, s.predict);
}

}  // namespace tern::trainer
