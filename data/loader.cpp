#include "tern/data/loader.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/random.h"
#include "tern/core/stopwatch.h"

namespace tern {

/// Makes a batch of samples. Immutable; the threads of a loader share it.
class Collator {
 public:
  virtual ~Collator() = default;
  /// The memory of a batch of n samples, as far as n determines it. The thread that calls the loader calls this.
  virtual LoadedBatch allocate(int64_t n) const = 0;
  /// Fills `batch` with the samples `indices`, as they are in `epoch`. The threads of the loader call this, or
  /// `next` if there are none.
  virtual void fill(std::span<const int64_t> indices, int64_t epoch, LoadedBatch& batch) const = 0;
};

namespace {

/// Sorts pools of whole steps by length, as Sampler::lengths says.
void group_by_length(const Sampler& sampler, int64_t epoch, std::vector<int64_t>& order) {
  const std::vector<int64_t>& lengths = *sampler.lengths;
  check(std::ssize(lengths) == sampler.size, "sampler: lengths of ", lengths.size(), " samples, expected ",
        sampler.size);
  check(sampler.step_size > 0 && sampler.step_size % sampler.ranks == 0, "sampler: ", sampler.step_size,
        " samples in a step, expected a multiple of ", sampler.ranks);
  check(sampler.pool > 0, "sampler: pools of ", sampler.pool, " steps, expected 1 or more");
  const int64_t steps = sampler.size / sampler.step_size;
  const auto step = [&](int64_t i) { return order.begin() + std::min(i, steps) * sampler.step_size; };
  for (int64_t first = 0, next; first < steps; first = next) {
    next = first + std::min(sampler.pool, steps - first);
    std::stable_sort(step(first), step(next), [&](int64_t a, int64_t b) {
      return lengths[static_cast<size_t>(a)] < lengths[static_cast<size_t>(b)];
    });
  }
  if (!sampler.shuffle) return;
  std::vector<int64_t> turns(static_cast<size_t>(steps));
  std::iota(turns.begin(), turns.end(), 0);
  shuffle(turns, RandomStream({.seed = sampler.seed,
                               .purpose = Purpose::shuffle,
                               .step = static_cast<uint32_t>(epoch),
                               .tensor = 1}));  // not the numbers that shuffle the samples
  const std::vector<int64_t> sorted(order.begin(), step(steps));
  for (int64_t i = 0; i < steps; ++i)
    std::copy_n(sorted.begin() + turns[static_cast<size_t>(i)] * sampler.step_size, sampler.step_size, step(i));
}

/// Calls `read`. What it throws then says which sample it was.
template <class Read>
auto read_sample(const std::string& data, int64_t index, const Read& read) {
  const auto named = [&](const std::exception& error) {
    return join({"data set '", data, "', sample ", index, ": ", error.what()});
  };
  try {
    return read();
  } catch (const InputError& error) {
    throw InputError(named(error));
  } catch (const std::filesystem::filesystem_error& error) {
    throw InputError(named(error));
  } catch (const ResourceError&) {
    throw;  // it is not about the sample
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(named(error));
  }
}

/// Batches of pictures. Their memory depends only on the number of pictures.
class ImageCollator final : public Collator {
 public:
  ImageCollator(const ImageDataset& dataset, const LoaderOptions& options)
      : dataset_(dataset),
        name_(options.name),
        transform_(options.transform),
        seed_(options.seed),
        form_(options.images),
        labels_(options.images == ImageForm::none ? options.labels : nullptr),
        device_(options.device),
        input_(dataset.spec()),
        output_(transform_.output(input_)) {
    check(!labels_ || std::ssize(*labels_) == dataset.size(), "loader: ", labels_ ? labels_->size() : 0,
          " labels, the data set has ", dataset.size(), " examples");
  }

  LoadedBatch allocate(int64_t n) const override {
    NamedTensors tensors = {{"label", Tensor::empty({n}, {.dtype = DType::i64})}};
    const Tensor indices = Tensor::empty({n}, {.dtype = DType::i64});
    if (form_ == ImageForm::transformed)
      tensors.emplace("image", Tensor::empty({n, output_.channels, output_.height, output_.width},
                                             {.format = MemoryFormat::channels_last}));
    LoadedBatch batch{Batch(indices, std::move(tensors)), std::vector<Augmentation>(static_cast<size_t>(n))};
    if (form_ == ImageForm::pixels)
      batch.pixels = device_backend(device_).host_memory(static_cast<size_t>(n * input_.numel()));
    return batch;
  }

  void fill(std::span<const int64_t> indices, int64_t epoch, LoadedBatch& batch) const override {
    std::ranges::copy(indices, batch.indices().data<int64_t>());
    const auto labels = batch["label"].span<int64_t>();
    const bool transforms = form_ == ImageForm::transformed;
    const auto images = transforms ? batch["image"].span<float>() : std::span<float>();
    const auto image_size = static_cast<size_t>(output_.numel()), pixel_size = static_cast<size_t>(input_.numel());
    std::vector<uint8_t> own(batch.pixels || labels_ ? 0 : pixel_size);
    for (size_t i = 0; i < indices.size(); ++i) {
      const std::span pixels = batch.pixels
                                   ? std::span(static_cast<uint8_t*>(batch.pixels.get()) + i * pixel_size, pixel_size)
                                   : std::span(own);
      labels[i] = read_sample(name_, indices[i], [&] {
        const int64_t label = labels_ ? (*labels_)[static_cast<size_t>(indices[i])] : dataset_.read(indices[i], pixels);
        check_input(0 <= label && label < input_.classes, "label ", label, ", expected 0 to ", input_.classes - 1);
        return label;
      });
      batch.augmentations[i] = transform_.draw(input_, seed_, epoch, indices[i]);
      if (transforms)
        transform_.apply(input_, batch.augmentations[i], pixels, images.subspan(i * image_size, image_size));
    }
  }

 private:
  const ImageDataset& dataset_;
  std::string name_;
  Transform transform_;
  uint64_t seed_;
  ImageForm form_;
  std::shared_ptr<const std::vector<int64_t>> labels_;
  Device device_;
  ImageSpec input_, output_;
};

/// Batches of any samples. Only the samples say how long the batch is and how many elements its sparse rows have.
class SampleCollator final : public Collator {
 public:
  SampleCollator(const Dataset& dataset, const std::string& name)
      : dataset_(dataset), name_(name), fields_(dataset.fields()) {}

  LoadedBatch allocate(int64_t) const override { return {}; }

  void fill(std::span<const int64_t> indices, int64_t, LoadedBatch& batch) const override {
    std::vector<Sample> samples;
    samples.reserve(indices.size());
    for (const int64_t index : indices)
      samples.push_back(read_sample(name_, index, [&] { return dataset_.sample(index); }));
    batch = {collate(name_, fields_, {indices.begin(), indices.end()}, samples), {}};
  }

 private:
  const Dataset& dataset_;
  std::string name_;
  std::vector<Field> fields_;
};

std::unique_ptr<const Collator> make_collator(const Dataset& dataset, const LoaderOptions& options) {
  if (const auto* images = dynamic_cast<const ImageDataset*>(&dataset))
    return std::make_unique<ImageCollator>(*images, options);
  return std::make_unique<SampleCollator>(dataset, options.name);
}

}  // namespace

int64_t Sampler::share() const {
  check(0 <= rank && rank < ranks, "sampler: rank ", rank, " of ", ranks);
  return size / ranks + (rank < size % ranks ? 1 : 0);
}

std::vector<int64_t> Sampler::order(int64_t epoch) const {
  check(size < int64_t{1} << 32, "sampler: ", size, " samples, expected less than 2^32");
  std::vector<int64_t> own(static_cast<size_t>(share()));
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  if (shuffle)
    tern::shuffle(all, RandomStream({.seed = seed, .purpose = Purpose::shuffle, .step = static_cast<uint32_t>(epoch)}));
  if (lengths) group_by_length(*this, epoch, all);
  for (size_t i = 0; i < own.size(); ++i) own[i] = all[i * static_cast<size_t>(ranks) + static_cast<size_t>(rank)];
  return own;
}

std::shared_ptr<const std::vector<int64_t>> lengths_of(const Dataset& data) {
  std::vector<int64_t> lengths(static_cast<size_t>(data.size()));
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = data.length(static_cast<int64_t>(i));
  return std::make_shared<const std::vector<int64_t>>(std::move(lengths));
}

DataLoader::DataLoader(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options)
    : sampler_(sampler), options_(options) {
  if (options_.name.empty()) options_.name = dataset.name();
  collator_ = make_collator(dataset, options_);
  check(sampler.size == dataset.size(), "loader: the sampler orders ", sampler.size, " samples, the data set has ",
        dataset.size());
  check_input(options.batch_size >= 1, "loader: a batch of ", options.batch_size, " samples, expected 1 or more");
  check_input(options.threads >= 0, "loader: ", options.threads, " threads, expected 0 or more");
  check(!sampler.lengths || sampler.step_size == options.batch_size * sampler.ranks, "loader: the sampler groups ",
        sampler.step_size, " samples to a step, expected ", options.batch_size, " for each of ", sampler.ranks,
        " ranks");
  // Count whole batches in the smallest share, so that every rank takes the same number of steps.
  const int64_t own = sampler.share();  // checks the sampler
  const int64_t share = options.drop_last ? sampler.size / sampler.ranks : own;
  batches_ = (share + (options.drop_last ? 0 : options.batch_size - 1)) / options.batch_size;
  check_input(!options.drop_last || batches_ > 0, "loader: a batch of ", options.batch_size,
              " samples is larger than the data, which has ", share, " for each rank");
  order_ = sampler_.order(epoch_);
}

DataLoader::~DataLoader() { stop(); }

void DataLoader::start(const DataPosition& position) {
  check(position.epoch >= 0 && 0 <= position.batch && position.batch <= batches_, "loader: no batch ", position.batch,
        " in epoch ", position.epoch, ", an epoch has ", batches_);
  if (!threads_.empty() && position == this->position()) return;
  stop();
  if (position.epoch != epoch_) order_ = sampler_.order(position.epoch);
  epoch_ = position.epoch;
  given_ = claimed_ = position.batch;
  if (options_.threads == 0) return;
  slots_.clear();
  slots_.resize(static_cast<size_t>(2 * options_.threads));
  const int64_t end = std::min(batches_, given_ + std::ssize(slots_));
  for (int64_t batch = given_; batch < end; ++batch)
    slot(batch).batch = collator_->allocate(std::ssize(indices_of(batch)));
  try {
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { prepare_ahead(); });
  } catch (const std::system_error& error) {
    const size_t started = threads_.size();
    stop();
    throw ResourceError(
        join({"loader: the system gave ", started, " threads, expected ", options_.threads, ": ", error.what()}));
  }
}

std::optional<LoadedBatch> DataLoader::next() {
  const Stopwatch stopwatch(wait_seconds_);
  if (options_.threads > 0 && slots_.empty()) start(position());
  if (given_ == batches_) return {};
  check(options_.threads == 0 || !threads_.empty(), "loader: next after a start that failed, expected another start");
  if (options_.threads == 0) {
    const auto indices = indices_of(given_++);
    LoadedBatch batch = collator_->allocate(std::ssize(indices));
    collator_->fill(indices, epoch_, batch);
    return batch;
  }
  // The consumer allocates the memory of pictures, never a thread. So the order of these allocations does not depend on
  // timing. The threads allocate other samples and their batches.
  const int64_t refill = given_ + std::ssize(slots_);
  Slot fresh;
  if (refill < batches_) fresh.batch = collator_->allocate(std::ssize(indices_of(refill)));
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

std::span<const int64_t> DataLoader::indices_of(int64_t batch) const {
  const auto first = static_cast<size_t>(batch * options_.batch_size);
  return std::span(order_).subspan(first, std::min(static_cast<size_t>(options_.batch_size), order_.size() - first));
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
      collator_->fill(indices_of(position), epoch_, own.batch);
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
