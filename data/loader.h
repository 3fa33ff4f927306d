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

/// N examples, ready for a training step. Also holds the raw pixels: a device that applies `augmentations` to `pixels`
/// itself gets the same values as `images`. A value; it does not share its tensors.
struct Batch {
  Tensor images;   ///< f32 [N, C, h, w], channels_last
  Tensor labels;   ///< i64 [N]
  Tensor indices;  ///< i64 [N]: indices in the data set; they key each example's random draws
  Tensor pixels;   ///< u8 [N, C, H, W], channels_last, as the data set returned them
  std::vector<Augmentation> augmentations;

  int64_t size() const { return labels.size(0); }
};

/// The order of the examples in an epoch, and one rank's share of it. A value. Rank r of N takes positions r, r + N, r
/// + 2N, ... of the common order. So in each step, N ranks with batches of b process the same examples as one rank with
/// batches of N·b.
struct Sampler {
  int64_t size = 0;      ///< number of examples in the data set
  bool shuffle = false;  ///< false: use the order of the data set
  uint64_t seed = 1;
  int rank = 0;
  int ranks = 1;

  /// Number of examples of this rank. The shares differ by at most one and together cover the data set.
  int64_t share() const;
  /// The data set indices of this rank in `epoch`. A pure function, the same on every machine. Throws Error from 2^32
  /// examples on.
  std::vector<int64_t> order(int64_t epoch) const;
};

struct LoaderOptions {
  int64_t batch_size = 64;
  bool drop_last = true;  ///< skip a smaller last batch (training); false: keep it (evaluation)
  int threads = 1;        ///< threads that prepare batches ahead; 0: `next` prepares them
  uint64_t seed = 1;      ///< seed of the augmentation
  Transform transform = {};
  bool images = true;  ///< false: no images and no pixels, if the device holds the whole data set
};

/// The position of the next batch that a loader returns.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;

  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

/// Makes batches from a data set; its own threads prepare them ahead. A batch depends only on the data, sampler,
/// options and position, not on the number of threads. Only one thread may call a loader. The data set is shared and
/// must outlive the loader.
class DataLoader {
 public:
  /// Throws InputError if `drop_last` is set and a batch is larger than a rank's share.
  DataLoader(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options);
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  /// Batches per epoch. With `drop_last`, it is the same on every rank.
  int64_t batches() const { return batches_; }
  /// The shape of one example of `Batch::images`.
  ImageSpec spec() const { return output_; }

  /// Continues at `position`; does not read the batches before it. Drops the batches that were prepared for another
  /// position.
  void start(const DataPosition& position);
  /// The batch at `position()`, or nullopt at the end of the epoch. Rethrows the error of reading the batch.
  std::optional<Batch> next();
  DataPosition position() const { return {epoch_, given_}; }
  /// Total time that callers spent in `next` since construction, in seconds.
  double wait_seconds() const { return wait_seconds_; }

 private:
  /// A slot of the queue. Batch k of the epoch uses slot k mod slots_.size().
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
  int64_t given_ = 0;    ///< batches returned to the consumer
  int64_t claimed_ = 0;  ///< batches that a thread has taken
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tern
