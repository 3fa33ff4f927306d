#include "tern/trainer/run/step_graph.h"

#include <algorithm>
#include <utility>

#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/kernels/loss.h"

namespace tern::trainer {

StepOutputs::Arrival StepOutputs::bring(const StepOutput& output) {
  if (device_.type == DeviceType::cpu) return [output] { return output; };
  auto& to = readbacks_[std::exchange(turn_, 1 - turn_)];
  const size_t count = output.outputs.size();
  const bool loss = output.loss.defined(), norm = output.squared_norm.defined();
  while (to.size() < 2 + count) to.push_back(make_readback(device_));
  if (loss) to[0]->start(output.loss);
  if (norm) to[1]->start(output.squared_norm);
  for (size_t i = 0; i < count; ++i) to[i + 2]->start(output.outputs[i]);
  return [&to, loss, norm, count] {
    StepOutput arrived;
    if (loss) arrived.loss = to[0]->wait();
    if (norm) arrived.squared_norm = to[1]->wait();
    for (size_t i = 0; i < count; ++i) arrived.outputs.push_back(to[i + 2]->wait());
    return arrived;
  };
}

// There is one more row than steps that come together: the next step is kept while these are copied.
KeptOutputs::KeptOutputs(Device device, int64_t steps)
    : rows_(Tensor::zeros({steps + 1, 2}, {.dtype = DType::f64, .device = device})),
      next_(Tensor::zeros({}, {.dtype = DType::i64, .device = device})),
      readback_(make_readback(device)) {}

void KeptOutputs::keep(const StepOutput& output) {
  has_norms_ = output.squared_norm.defined();
  kernels::keep_loss(output.loss, output.squared_norm, rows_, next_);
}

void KeptOutputs::bring(size_t count) {
  count_ = count;
  readback_->start(rows_);
}

std::vector<StepOutput> KeptOutputs::wait() {
  const Tensor rows = readback_->wait();
  std::vector<StepOutput> outputs(count_);
  for (StepOutput& output : outputs) {
    const double* const row = rows.data<double>() + 2 * first_;
    output.loss = Tensor::full({}, row[0], {.dtype = DType::f64});
    if (has_norms_) output.squared_norm = Tensor::full({}, row[1], {.dtype = DType::f64});
    first_ = (first_ + 1) % rows.size(0);
  }
  return outputs;
}

namespace {

/// Tensors like those of an output.
StepOutput empty_like(const StepOutput& output) {
  const auto like = [](const Tensor& tensor) { return tensor.defined() ? Tensor::empty_like(tensor) : Tensor(); };
  StepOutput empty = {.loss = like(output.loss), .squared_norm = like(output.squared_norm)};
  for (const Tensor& tensor : output.outputs) empty.outputs.push_back(like(tensor));
  return empty;
}

void copy(const StepOutput& from, StepOutput& to) {
  if (to.loss.defined()) to.loss.copy_from(from.loss);
  if (to.squared_norm.defined()) to.squared_norm.copy_from(from.squared_norm);
  for (size_t i = 0; i < to.outputs.size(); ++i) to.outputs[i].copy_from(from.outputs[i]);
}

}  // namespace

StepGraph::StepGraph(Module& model, Step step, Gradients gradients, Agree agree)
    : model_(model), step_(std::move(step)), gradients_(gradients), agree_(std::move(agree)) {
  for (const auto& [name, parameter] : model_.parameters()) parameters_.push_back(parameter);
  for (const auto& [name, buffer] : model_.buffers()) buffers_.push_back(buffer);
}

bool StepGraph::takes(const DeviceBatch& batch) {
  constexpr int64_t kStepsBefore = 3;  // they create what is made on first use, and time the engines
  Shapes shapes;
  for (const auto& [name, tensor] : batch.on_device().tensors()) shapes.emplace(name, tensor.shape());
  const bool repeats = shapes == shapes_;
  copy_parameters(parameters_);
  if (!recorded_.empty() && places() != places_) recorded_.clear();
  if (recorded_.empty()) {
    shapes_ = std::move(shapes);
    if (seen_++ < kStepsBefore) return false;
  }
  if (repeats && recorded_on(batch.on_device()) == nullptr) record_step(batch);
  return repeats;
}

std::vector<const void*> StepGraph::places() const {
  std::vector<const void*> places;
  const auto add = [&](const Tensor& tensor) { places.push_back(tensor.defined() ? tensor.raw_data() : nullptr); };
  for (const Parameter* parameter : parameters_) {
    add(parameter->value());
    add(parameter->current_copy());
  }
  for (const Tensor* buffer : buffers_) add(*buffer);
  return places;
}

const StepGraph::Recorded* StepGraph::recorded_on(const Batch& batch) const {
  const auto place = [](const auto& field) { return field.second.raw_data(); };
  const auto found = std::ranges::find_if(recorded_, [&](const Recorded& recorded) {
    return recorded.batch.indices().raw_data() == batch.indices().raw_data() &&
           std::ranges::equal(recorded.batch.tensors(), batch.tensors(), {}, place, place);
  });
  return found == recorded_.end() ? nullptr : &*found;
}

void StepGraph::record_step(const DeviceBatch& batch) {
  Recorded made{.batch = batch.on_device()};
  for (const auto& [name, buffer] : model_.buffers())
    if (buffer->dtype() == DType::i64 && buffer->device().type == DeviceType::cpu)
      made.counters.push_back({buffer->data<int64_t>(), -*buffer->data<int64_t>()});
  const auto restore = [&] {
    for (auto& [value, step] : made.counters) {
      step += *value;
      *value -= step;
    }
    model_.zero_gradients();
  };
  model_.zero_gradients();
  places_ = places();
  std::vector<std::pair<Tensor, uint32_t>> versions;
  for (const Parameter* parameter : parameters_)
    for (const Tensor& tensor : {parameter->value(), parameter->current_copy()})
      versions.emplace_back(tensor, tensor.version());
  const Recording* earlier = recorded_.empty() ? nullptr : recorded_.back().recording.get();
  try {
    // The earlier step computes in the memory that a later one takes, while the output of that one is still read.
    if (earlier != nullptr) made.output = empty_like(recorded_.back().output);
    made.recording = record(
        batch.indices().device(),
        [&] {
          if (earlier == nullptr)
            made.output = step_(batch);
          else
            copy(step_(batch), made.output);
          if (gradients_ == Gradients::dropped) return;
          for (const auto& [name, parameter] : model_.trained_parameters())
            made.gradients.emplace_back(parameter, parameter->gradient());
        },
        earlier);
  } catch (const PeerError&) {
    restore();
    throw;
  } catch (...) {
    restore();
    if (agree_) agree_(false);
    throw;
  }
  restore();
  check(!agree_ || agree_(true), "another rank could not record its step");
  for (const auto& [tensor, version] : versions)
    if (tensor.version() != version) made.written.push_back(tensor);
  if (recorded_.size() == 2) recorded_.erase(recorded_.begin());
  recorded_.push_back(std::move(made));
}

const StepOutput& StepGraph::run(const DeviceBatch& batch, uint32_t step) {
  const Recorded* recorded = recorded_on(batch.on_device());
  check(recorded != nullptr, "step graph: the batch is in memory that no step was recorded on");
  recorded->recording->replay(step);
  for (const Counter& counter : recorded->counters) *counter.value += counter.step;
  for (const Tensor& tensor : recorded->written) tensor.mark_written();
  for (const auto& [parameter, gradient] : recorded->gradients) parameter->set_gradient(gradient);
  return recorded->output;
}

}  // namespace tern::trainer
