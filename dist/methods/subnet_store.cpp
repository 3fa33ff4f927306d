#include "tern/dist/methods/subnet_store.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tern/core/error.h"
#include "tern/dist/comm/bytes.h"
#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

/// A row-major copy.
Tensor copy_on_cpu(const Tensor& tensor) {
  const Tensor copy = Tensor::empty(tensor.shape(), {tensor.dtype()});
  copy.copy_from(tensor);
  return copy;
}

using Indices = std::vector<int64_t>;

Indices counted(int64_t begin, int64_t end) {
  Indices indices(static_cast<size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

/// Sets the `indices` of `slice` along an axis of a tensor.
void cut(TensorSlice& slice, size_t axis, int64_t block, Indices indices) {
  (axis == 0 ? slice.rows : slice.columns) = std::move(indices);
  if (axis == 1) slice.block = block;
}

size_t bytes_of(const StateDict& tensors) {
  size_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.bytes();
  return bytes;
}

bool has_fixed_size(const GradientCodec* codec) { return codec == nullptr || codec->traits().fixed_size; }

/// Bytes of a tensor in a message, if the codec has a fixed size.
int64_t coded_bytes(const GradientCodec* codec, const Shape& shape) {
  return codec == nullptr ? 4 * shape.numel() : codec->most_bytes(shape);
}

void append(GradientCodec* codec, const GradientTag& tag, const Tensor& x, std::vector<std::byte>& message) {
  if (codec == nullptr) return append_values(message, std::span<const float>(x.span<float>()));
  if (has_fixed_size(codec)) return codec->encode(tag, x, message);
  std::vector<std::byte> code;
  codec->encode(tag, x, code);
  append_value(message, static_cast<uint32_t>(code.size()));
  append_values(message, std::span<const std::byte>(code));
}

Tensor read(GradientCodec* codec, const GradientTag& tag, const Shape& shape, ByteReader& message) {
  Tensor x = Tensor::empty(shape);
  if (codec == nullptr) {
    message.values(x.span<float>());
    return x;
  }
  x.fill(0);
  const size_t size =
      has_fixed_size(codec) ? static_cast<size_t>(coded_bytes(codec, shape)) : message.value<uint32_t>();
  codec->decode_add(tag, message.take(size), x);
  return x;
}

}  // namespace

SubnetStore::SubnetStore(Communicator& communicator, SubnetExchange exchange, const SubnetCuts& cuts)
    : communicator_(&communicator), exchange_(exchange), cuts_(&cuts) {}

void SubnetStore::keep(const StateDict& whole, const std::set<std::string>& parameters) {
  kept_.clear();
  for (const auto& [name, tensor] : whole) {
    const TensorCut* cut = cuts_->find(name);
    if (cut == nullptr) continue;
    Kept kept{name, parameters.contains(name), *cut, tensor.shape(), {}};
    kept.share = take(tensor, share_slice(kept, communicator_->rank()));
    kept_.push_back(std::move(kept));
  }
}

NeuronRange neurons_kept_by(int home, int ranks, int64_t neurons, SubnetExchange exchange) {
  if (exchange == SubnetExchange::coordinator) return {0, home == 0 ? neurons : 0};
  return neuron_range(home, ranks, neurons);
}

NeuronRange SubnetStore::neurons_at(int home, int layer) const {
  return neurons_kept_by(home, communicator_->size(), cuts_->widths()[static_cast<size_t>(layer)], exchange_);
}

TensorSlice SubnetStore::share_slice(const Kept& kept, int home) const {
  const int first = kept.cut.first_axis();
  const auto [layer, block] = kept.cut.axes[static_cast<size_t>(first)];
  const auto [begin, end] = neurons_at(home, layer);
  if (const auto neuron = kept.cut.neuron) {
    const bool here = *neuron >= begin && *neuron < end;
    return {.rows = counted(0, here ? kept.whole[0] : 0), .columns = {}};
  }
  TensorSlice slice;
  cut(slice, static_cast<size_t>(first), block, counted(begin, end));
  return slice;
}

Shape SubnetStore::share_shape(const Kept& kept, int home) const {
  return share_slice(kept, home).shape_in(kept.whole);
}

SubnetStore::Meeting SubnetStore::meeting(const Kept& kept, const SubnetParts& parts, int home, int worker) const {
  const auto part_of = [&](int layer) -> const Indices& {
    return parts[static_cast<size_t>(layer)][static_cast<size_t>(worker)];
  };
  const auto first = static_cast<size_t>(kept.cut.first_axis());
  const auto [layer, block] = kept.cut.axes[first];
  const auto [begin, end] = neurons_at(home, layer);
  const Indices& part = part_of(layer);
  if (const auto neuron = kept.cut.neuron) {
    const bool both = *neuron >= begin && *neuron < end && std::ranges::binary_search(part, *neuron);
    const TensorSlice rows = {.rows = counted(0, both ? kept.whole[0] : 0), .columns = {}};
    return {rows, rows};
  }
  const auto low = std::ranges::lower_bound(part, begin), high = std::ranges::lower_bound(part, end);
  Indices kept_here(low, high);
  for (int64_t& neuron : kept_here) neuron -= begin;

  Meeting meeting;
  cut(meeting.at_home, first, block, std::move(kept_here));
  cut(meeting.at_worker, first, block, counted(low - part.begin(), high - part.begin()));
  if (const auto [other, columns] = kept.cut.axes[1]; first == 0 && other >= 0)
    cut(meeting.at_home, 1, columns, part_of(other));
  return meeting;
}

StateDict SubnetStore::download(const SubnetParts& parts, GradientCodec* format) {
  const int me = communicator_->rank(), n = communicator_->size();
  const auto codec = [&](const Kept& kept) { return kept.parameter ? format : nullptr; };
  Leaving leaving;
  StateDict subnet;
  for (const Kept& kept : kept_) subnet.add(kept.name, Tensor::zeros(subnet_shape(kept.cut, kept.whole, parts, me)));
  {
    const Stopwatch encode(times_.encode);
    leaving.bytes.reserve(bytes_of(state()));
    for (int worker = 0; worker < n; ++worker) {
      const size_t begin = leaving.bytes.size();
      for (const Kept& kept : kept_) {
        const auto [at_home, at_worker] = meeting(kept, parts, me, worker);
        const Tensor slice = take(kept.share, at_home);
        if (worker == me)
          put(slice, at_worker, subnet.at(kept.name));
        else
          append(codec(kept), {kept.name, {}}, slice, leaving.bytes);
      }
      leaving.counts.push_back(static_cast<int64_t>(leaving.bytes.size() - begin));
    }
  }
  const auto coming = [&](const Kept& kept, int home) -> Coming {
    const TensorSlice at_worker = meeting(kept, parts, home, me).at_worker;
    return {at_worker, at_worker.shape_in(subnet.at(kept.name).shape()), codec(kept)};
  };
  const Arrived arrived = exchange(leaving, coming, Account::payload);
  const Stopwatch decode(times_.decode);
  for (int home = 0; home < n; ++home) {
    if (home == me) continue;
    ByteReader reader(arrived.from[static_cast<size_t>(home)]);
    for (const Kept& kept : kept_) {
      const Coming slice = coming(kept, home);
      put(read(slice.codec, {kept.name, {}}, slice.shape, reader), slice.place, subnet.at(kept.name));
    }
    check(reader.empty(), "independent subnets: rank ", home, " sent more than its part of the subnet");
  }
  return subnet;
}

void SubnetStore::upload(const SubnetParts& parts, const StateDict& subnet, const SubnetUpload& how) {
  const int me = communicator_->rank(), n = communicator_->size();
  const auto changes = [&](const Kept& kept) { return how.received != nullptr && kept.parameter; };
  const auto codec = [&](const Kept& kept) { return changes(kept) ? how.codec : nullptr; };
  const auto tag = [&](size_t k, int home, int worker) -> GradientTag {
    return {kept_[k].name,
            {.seed = how.seed,
             .purpose = Purpose::codec,
             .owner = static_cast<uint32_t>(worker),
             .step = how.step,
             .tensor = static_cast<uint32_t>(k * static_cast<size_t>(n) + static_cast<size_t>(home))}};
  };
  Leaving leaving;
  {
    const Stopwatch encode(times_.encode);
    leaving.bytes.reserve(bytes_of(subnet));
    for (int home = 0; home < n; ++home) {
      const size_t begin = leaving.bytes.size();
      for (size_t k = 0; k < kept_.size(); ++k) {
        const Kept& kept = kept_[k];
        const auto [at_home, at_worker] = meeting(kept, parts, home, me);
        Tensor slice = take(subnet.at(kept.name), at_worker);
        if (home == me) {
          put(slice, at_home, kept.share);
          continue;
        }
        if (changes(kept)) kernels::subtract(slice, take(how.received->at(kept.name), at_worker), slice);
        append(codec(kept), tag(k, home, me), slice, leaving.bytes);
      }
      leaving.counts.push_back(static_cast<int64_t>(leaving.bytes.size() - begin));
    }
  }
  const auto coming = [&](const Kept& kept, int worker) -> Coming {
    const TensorSlice at_home = meeting(kept, parts, me, worker).at_home;
    return {at_home, at_home.shape_in(kept.share.shape()), codec(kept)};
  };
  const Arrived arrived = exchange(leaving, coming, how.account);
  const Stopwatch decode(times_.decode);
  for (int worker = 0; worker < n; ++worker) {
    if (worker == me) continue;
    ByteReader reader(arrived.from[static_cast<size_t>(worker)]);
    for (size_t k = 0; k < kept_.size(); ++k) {
      const Kept& kept = kept_[k];
      const Coming from = coming(kept, worker);
      Tensor slice = read(from.codec, tag(k, me, worker), from.shape, reader);
      if (changes(kept)) kernels::accumulate(take(kept.share, from.place), slice);
      put(slice, from.place, kept.share);
    }
    check(reader.empty(), "independent subnets: rank ", worker, " sent more than its subnet");
  }
}

std::vector<int64_t> SubnetStore::coming_bytes(const Leaving& leaving, const SliceComing& coming) {
  const int n = communicator_->size();
  Indices bytes(static_cast<size_t>(n));
  for (int peer = 0; peer < n; ++peer) {
    if (peer == communicator_->rank()) continue;
    for (const Kept& kept : kept_) {
      const Coming slice = coming(kept, peer);
      if (!has_fixed_size(slice.codec)) return told_bytes(leaving);
      bytes[static_cast<size_t>(peer)] += coded_bytes(slice.codec, slice.shape);
    }
  }
  return bytes;
}

std::vector<int64_t> SubnetStore::told_bytes(const Leaving& leaving) {
  const Stopwatch wait(times_.wait);
  Tensor lengths = Tensor::empty({std::ssize(leaving.counts)}, {.dtype = DType::i64});
  communicator_->all_to_all(Tensor::from<int64_t>(lengths.shape(), leaving.counts), lengths, Account::overhead).wait();
  return lengths.to_vector<int64_t>();
}

SubnetStore::Arrived SubnetStore::exchange(const Leaving& leaving, const SliceComing& coming, Account account) {
  const Indices receives = coming_bytes(leaving, coming);
  const Stopwatch wait(times_.wait);
  const auto bytes = [](int64_t count) { return Tensor::empty({count}, {.dtype = DType::u8}); };
  const Tensor sent = bytes(static_cast<int64_t>(leaving.bytes.size()));
  std::ranges::copy(leaving.bytes, reinterpret_cast<std::byte*>(sent.data<uint8_t>()));
  Arrived arrived{bytes(std::accumulate(receives.begin(), receives.end(), int64_t{0})), {}};
  communicator_->all_to_all(sent, leaving.counts, arrived.bytes, receives, account).wait();
  auto rest = std::as_bytes(arrived.bytes.span<uint8_t>());
  for (const int64_t count : receives) {
    arrived.from.push_back(rest.first(static_cast<size_t>(count)));
    rest = rest.subspan(static_cast<size_t>(count));
  }
  return arrived;
}

StateDict SubnetStore::gather() {
  const Stopwatch wait(times_.wait);
  StateDict whole;
  for (const Kept& kept : kept_) {
    const auto elements = [&](int home) { return share_shape(kept, home).numel(); };
    Indices counts;
    for (int home = 0; home < communicator_->size(); ++home) counts.push_back(elements(home));
    Tensor all = Tensor::empty({kept.whole.numel()});
    const Tensor tensor = Tensor::empty(kept.whole);
    communicator_->all_gather(kept.share, all, counts, Account::overhead).wait();
    int64_t begin = 0;
    for (int home = 0; home < communicator_->size(); ++home) {
      const Tensor part = all.slice(begin, begin + elements(home)).reshape(share_shape(kept, home));
      put(part, share_slice(kept, home), tensor);
      begin += elements(home);
    }
    whole.add(kept.name, tensor);
  }
  return whole;
}

StateDict SubnetStore::state() const {
  StateDict state;
  for (const Kept& kept : kept_) state.add(kept.name, kept.share);
  return state;
}

SubnetStore SubnetStore::clone() const {
  SubnetStore copy = *this;
  for (Kept& kept : copy.kept_) kept.share = kept.share.clone();
  return copy;
}

StateDict average_of_uncut(Module& model, const SubnetCuts& cuts, Communicator& communicator, Account account,
                           double& wait) {
  StateDict rest;
  int64_t elements = 0;
  std::vector<int64_t> counters;
  for (const auto& [name, tensor] : model.state()) {
    if (cuts.find(name) != nullptr) continue;
    rest.add(name, copy_on_cpu(tensor));
    if (is_floating(tensor.dtype()))
      elements += tensor.numel();
    else
      counters.push_back(static_cast<int64_t>(tensor.item()));
  }
  const auto count = static_cast<int64_t>(counters.size());
  Tensor sum = Tensor::empty({elements}), most = Tensor::from<int64_t>({count}, counters);
  float* at = sum.data<float>();
  for (const auto& [name, tensor] : rest)
    if (is_floating(tensor.dtype())) at = std::ranges::copy(tensor.span<float>(), at).out;
  const Work first = communicator.all_reduce(sum, Reduction::sum, account),
             second = communicator.all_reduce(most, Reduction::max, account);
  {
    const Stopwatch watch(wait);
    first.wait();
    second.wait();
  }
  const auto ranks = static_cast<float>(communicator.size());
  const float* total = sum.data<float>();
  const int64_t* counter = most.data<int64_t>();
  for (const auto& [name, tensor] : rest) {
    if (is_floating(tensor.dtype()))
      for (float& value : tensor.span<float>()) value = *total++ / ranks;
    else
      tensor.fill(static_cast<double>(*counter++));
  }
  return rest;
}

}  // namespace tern
