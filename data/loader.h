#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/transforms.h"

namespace tern {

/// The order of the samples in an epoch, and one rank's share of it. A value. Rank r of N takes positions r, r + N, r +
/// 2N, ... of the common order. So in each step, N ranks with batches of b process the same samples as one rank with
/// batches of N·b.
struct Sampler {
  int64_t size = 0;      ///< number of samples in the data set
  bool shuffle = false;  ///< false: use the order of the data set
  uint64_t seed = 1;
  int rank = 0;
  int ranks = 1;
  /// The length of each sample, to group samples of similar length; null: do not group. With groups, the order is cut
  /// into pools of `pool` steps. Each pool is sorted by length and cut into steps. With `shuffle`, the whole steps then
  /// come in a new order. The samples that fill no whole step are not sorted; they come last.
  std::shared_ptr<const std::vector<int64_t>> lengths = {};
  int64_t step_size = 0;  ///< samples of all ranks in a step: ranks · batch_size; needed with `lengths`
  int64_t pool = 50;      ///< steps that are sorted together

  /// Number of samples of this rank. The shares differ by at most one and together cover the data set.
  int64_t share() const;
  /// The data set indices of this rank in `epoch`. A pure function, the same on every machine. Throws Error from 2^32
  /// samples on, or if `lengths` and `step_size` do not fit.
  std::vector<int64_t> order(int64_t epoch) const;
};

/// The length of each sample of `data`, for Sampler::lengths.
std::shared_ptr<const std::vector<int64_t>> lengths_of(const Dataset& data);

/// What batches of pictures have.
enum class ImageForm : uint8_t {
  transformed,  ///< "image": floats, for the network
  pixels,       ///< LoadedBatch::pixels: bytes, a quarter as many; the device transforms them
  none,         ///< no images: the device holds the whole data set
};

struct LoaderOptions {
  int64_t batch_size = 64;
  bool drop_last = true;                      ///< skip a smaller last batch (training); false: keep it (evaluation)
  int threads = 1;                            ///< threads that prepare batches ahead; 0: `next` prepares them
  uint64_t seed = 1;                          ///< seed of the augmentation
  std::string name = {};                      ///< of the data set, for messages; empty: Dataset::name()
  Transform transform = {};                   ///< for an ImageDataset only
  ImageForm images = ImageForm::transformed;  ///< for an ImageDataset only
  /// For ImageForm::none: the label of each example, so that the loader reads none. If null, it reads them for the
  /// label.
  std::shared_ptr<const std::vector<int64_t>> labels = {};
  Device device = {};  ///< that the pixels are copied to
};

/// What a loader returns: a batch on the CPU and, of an ImageDataset, the random choices for each image. A device that
/// applies them to the raw pixels itself gets the same values as "image".
struct LoadedBatch : Batch {
  std::vector<Augmentation> augmentations = {};
  std::shared_ptr<void> pixels = {};  ///< u8 [N, H, W, C], if the options ask for them; see DeviceBackend::host_memory
};

/// The position of the next batch that a loader returns.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;

  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

class Collator;

/// Makes batches from a data set; its own threads prepare them ahead, from the first `start` or `next` on. A batch
/// depends only on the data, sampler, options and position, not on the number of threads. Only one thread may call a
/// loader. The data set is shared and must outlive the loader.
class DataLoader {
 public:
  /// Throws InputError if `drop_last` is set and a batch is larger than a rank's share. Throws Error if the sampler
  /// groups by length and its `step_size` is not ranks · batch_size.
  DataLoader(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options);
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  /// The name of the data set in messages.
  const std::string& name() const { return options_.name; }
  /// Batches per epoch. With `drop_last`, it is the same on every rank.
  int64_t batches() const { return batches_; }
  /// Continues at `position`; does not read the batches before it. Drops the batches that were prepared for another
  /// position.
  void start(const DataPosition& position);
  /// The batch at `position()`, or nullopt at the end of the epoch. If a sample cannot be read, throws InputError, or
  /// Error if the cause was no input; the message names the data set and the sample. If memory runs out, the exception
  /// is the one that was thrown.
  std::optional<LoadedBatch> next();
  DataPosition position() const { return {epoch_, given_}; }
  /// Total time that callers spent in `next` since construction, in seconds.
  double wait_seconds() const { return wait_seconds_; }

 private:
  /// A slot of the queue. Batch k of the epoch uses slot k mod slots_.size().
  struct Slot {
    LoadedBatch batch;
    bool ready = false;
    std::exception_ptr failure;
  };

  Slot& slot(int64_t batch) { return slots_[static_cast<size_t>(batch) % slots_.size()]; }
  std::span<const int64_t> indices_of(int64_t batch) const;
  void prepare_ahead();
  void stop();

  std::unique_ptr<const Collator> collator_;
  Sampler sampler_;
  LoaderOptions options_;
  int64_t batches_ = 0;

  int64_t epoch_ = 0;
  std::vector<int64_t> order_;
  double wait_seconds_ = 0;

  std::mutex mutex_;
  std::condition_variable batch_ready_, place_free_;
  std::vector<Slot> slots_;  ///< empty before the first start, and without threads
  int64_t given_ = 0;        ///< batches returned to the consumer
  int64_t claimed_ = 0;      ///< batches that a thread has taken
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tern
