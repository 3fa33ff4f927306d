#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/transforms.h"

namespace tern {

/// N examples, ready for a step, and what they were made of: a device that applies `augmentations` to `pixels` itself
/// gets `images`. A value; its tensors are nobody else's.
struct Batch {
  Tensor images;   ///< f32 [N, C, h, w], channels_last
  Tensor labels;   ///< i64 [N]
  Tensor indices;  ///< i64 [N]: global indices in the data set, the key of every draw per example
  Tensor pixels;   ///< u8 [N, C, H, W], channels_last, as read
  std::vector<Augmentation> augmentations;

  int64_t size() const { return labels.size(0); }
};

/// The order in which examples are visited, and one rank's share of it; a value. Rank r of N takes places r, r + N,
/// r + 2N, ... of the common order, so N ranks with batches of b see together, step by step, the examples of one rank
/// with batches of N·b.
struct Sampler {
  int64_t size = 0;      ///< examples in the data set
  bool shuffle = false;  ///< false: in the order of the data set
  uint64_t seed = 1;
  int rank = 0;
  int ranks = 1;

  /// Examples of this rank's share; shares of the ranks differ by one at most and cover the set.
  int64_t share() const;
  /// This rank's global indices in `epoch`: a pure function, the same on every machine.
  std::vector<int64_t> order(int64_t epoch) const;
};

struct LoaderOptions {
  int64_t batch_size = 64;
  bool drop_last = true;  ///< leave out a last batch that would be smaller (training); false: keep it (evaluation)
  int threads = 1;        ///< that prepare batches ahead; 0: in the thread that calls `next`
  uint64_t seed = 1;      ///< of the augmentation
  Transform transform = {};
  bool images = true;  ///< false: batches hold neither images nor pixels, for a device that has the whole set
};

/// The next batch a loader gives out.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;

  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

/// Turns a data set into batches, prepared ahead of their use by threads of its own. What a batch holds depends on
/// data, sampler, options and position alone, never on the number of threads. One thread consumes; the data set is
/// shared and must outlive the loader.
class DataLoader {
 public:
  /// An InputError where the batch is larger than this rank's share and would be dropped.
  DataLoader(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options);
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  /// Batches of an epoch; with `drop_last` the same on every rank.
  int64_t batches() const { return batches_; }
  /// What one example of `Batch::images` looks like.
  ImageSpec spec() const { return output_; }

  /// Begins at `position`, skipping what lies before at no cost; what was prepared for another place is dropped.
  void start(const DataPosition& position);
  /// The batch at `position()`, or nothing where the epoch has ended. Rethrows what reading it threw.
  std::optional<Batch> next();
  DataPosition position() const { return {epoch_, given_}; }
  /// Seconds that `next` has kept its caller waiting since the loader was made.
  double wait_seconds() const { return wait_seconds_; }

 private:
  /// One place of the queue; batch k of the epoch is prepared in place k mod places.
  struct Slot {
    Batch batch;
    bool ready = false;
    std::exception_ptr failure;
  };

  Slot& slot(int64_t batch) { return slots_[static_cast<size_t>(batch) % slots_.size()]; }
  int64_t size_of_batch(int64_t batch) const;
  Batch allocate(int64_t batch) const;
  void fill(int64_t position, Batch& batch) const;
  void prepare_ahead();
  void stop();

  const Dataset& dataset_;
  Sampler sampler_;
  LoaderOptions options_;
  ImageSpec input_, output_;
  int64_t batches_ = 0;

  int64_t epoch_ = 0;
  std::vector<int64_t> order_;
  double wait_seconds_ = 0;

  std::mutex mutex_;
  std::condition_variable batch_ready_, place_free_;
  std::vector<Slot> slots_;
  int64_t given_ = 0;    ///< batches handed to the consumer
  int64_t claimed_ = 0;  ///< batches a thread has taken on
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tern
