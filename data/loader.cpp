#include "tern/data/loader.h"

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/random.h"
#include "tern/core/stopwatch.h"

namespace tern {
namespace {

/// Fisher–Yates shuffle, from the last position down.
void shuffle_in_place(std::vector<int64_t>& order, const RandomStream& random) {
  for (size_t i = order.size(); i > 1; --i) {
    const auto chosen = random.below(i - 1, static_cast<uint32_t>(i));
    std::swap(order[i - 1], order[chosen]);
  }
}

}  // namespace

int64_t Sampler::share() const {
  check(0 <= rank && rank < ranks, "sampler: rank ", rank, " of ", ranks);
  return size / ranks + (rank < size % ranks ? 1 : 0);
}

std::vector<int64_t> Sampler::order(int64_t epoch) const {
  check(size < int64_t{1} << 32, "sampler: ", size, " examples, expected less than 2^32");
  std::vector<int64_t> own(static_cast<size_t>(share()));
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  if (shuffle)
    shuffle_in_place(all,
                     RandomStream({.seed = seed, .purpose = Purpose::shuffle, .step = static_cast<uint32_t>(epoch)}));
  for (size_t i = 0; i < own.size(); ++i) own[i] = all[i * static_cast<size_t>(ranks) + static_cast<size_t>(rank)];
  return own;
}

DataLoader::DataLoader(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options)
    : dataset_(dataset),
      sampler_(sampler),
      options_(options),
      input_(dataset.spec()),
      output_(options.transform.output(input_)) {
  check(sampler.size == dataset.size(), "loader: the sampler orders ", sampler.size, " examples, the data set has ",
        dataset.size());
  check_input(options.batch_size >= 1, "loader: a batch of ", options.batch_size, " examples, expected 1 or more");
  check_input(options.threads >= 0, "loader: ", options.threads, " threads, expected 0 or more");
  // Count whole batches in the smallest share, so that every rank takes the same number of steps.
  const int64_t share = options.drop_last ? sampler.size / sampler.ranks : sampler.share();
  batches_ = (share + (options.drop_last ? 0 : options.batch_size - 1)) / options.batch_size;
  check_input(!options.drop_last || batches_ > 0, "loader: a batch of ", options.batch_size,
              " examples is larger than the data, which has ", share, " for each rank");
  start({});
}

DataLoader::~DataLoader() { stop(); }

void DataLoader::start(const DataPosition& position) {
  check(position.epoch >= 0 && 0 <= position.batch && position.batch <= batches_, "loader: no batch ", position.batch,
        " in epoch ", position.epoch, ", an epoch has ", batches_);
  stop();
  epoch_ = position.epoch;
  order_ = sampler_.order(epoch_);
  given_ = claimed_ = position.batch;
  if (options_.threads == 0) return;
  slots_.clear();
  slots_.resize(static_cast<size_t>(2 * options_.threads));
  const int64_t end = std::min(batches_, given_ + std::ssize(slots_));
  for (int64_t batch = given_; batch < end; ++batch) slot(batch).batch = allocate(batch);
  try {
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { prepare_ahead(); });
  } catch (const std::system_error& error) {
    const size_t started = threads_.size();
    stop();
    fail({"loader: the system gave ", started, " threads, expected ", options_.threads, ": ", error.what()});
  }
}

std::optional<Batch> DataLoader::next() {
  if (given_ == batches_) return {};
  const Stopwatch stopwatch(wait_seconds_);
  if (options_.threads == 0) {
    Batch batch = allocate(given_);
    fill(given_++, batch);
    return batch;
  }
  // The consumer allocates, never a thread. So the order of allocations does not depend on timing.
  const int64_t refill = given_ + std::ssize(slots_);
  Slot fresh;
  if (refill < batches_) fresh.batch = allocate(refill);
  std::unique_lock lock(mutex_);
  Slot& ready = slot(given_);
  batch_ready_.wait(lock, [&] { return ready.ready; });
  std::swap(ready, fresh);
  ++given_;
  lock.unlock();
  place_free_.notify_one();
  if (fresh.failure) std::rethrow_exception(fresh.failure);
  return std::move(fresh.batch);
}

int64_t DataLoader::size_of_batch(int64_t batch) const {
  return std::min(options_.batch_size, std::ssize(order_) - batch * options_.batch_size);
}

Batch DataLoader::allocate(int64_t batch) const {
  const int64_t n = size_of_batch(batch);
  Batch allocated = {
      .images = {},
      .labels = Tensor::empty({n}, {.dtype = DType::i64}),
      .indices = Tensor::empty({n}, {.dtype = DType::i64}),
      .pixels = {},
      .augmentations = std::vector<Augmentation>(static_cast<size_t>(n)),
  };
  if (!options_.images) return allocated;
  allocated.images =
      Tensor::empty({n, output_.channels, output_.height, output_.width}, {.format = MemoryFormat::channels_last});
  allocated.pixels = Tensor::empty({n, input_.channels, input_.height, input_.width},
                                   {.dtype = DType::u8, .format = MemoryFormat::channels_last});
  return allocated;
}

void DataLoader::fill(int64_t position, Batch& batch) const {
  const auto image_size = static_cast<size_t>(output_.numel()), example_size = static_cast<size_t>(input_.numel());
  std::vector<uint8_t> unused(options_.images ? 0 : example_size);
  for (size_t i = 0; i < batch.augmentations.size(); ++i) {
    const int64_t index = order_[static_cast<size_t>(position * options_.batch_size) + i];
    const auto example = options_.images ? batch.pixels.span<uint8_t>().subspan(i * example_size, example_size)
                                         : std::span<uint8_t>(unused);
    batch.indices.data<int64_t>()[i] = index;
    batch.labels.data<int64_t>()[i] = dataset_.read(index, example);
    batch.augmentations[i] = options_.transform.draw(input_, options_.seed, epoch_, index);
    if (options_.images)
      options_.transform.apply(input_, batch.augmentations[i], example,
                               batch.images.span<float>().subspan(i * image_size, image_size));
  }
}

void DataLoader::prepare_ahead() {
  std::unique_lock lock(mutex_);
  for (;;) {
    place_free_.wait(lock, [&] { return stopping_ || claimed_ == batches_ || claimed_ < given_ + std::ssize(slots_); });
    if (stopping_ || claimed_ == batches_) return;
    const int64_t position = claimed_++;
    Slot& own = slot(position);
    lock.unlock();
    try {
      fill(position, own.batch);
    } catch (...) {
      own.failure = std::current_exception();
    }
    lock.lock();
    own.ready = true;
    batch_ready_.notify_one();
  }
}

void DataLoader::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  place_free_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  stopping_ = false;
}

}  // namespace tern
