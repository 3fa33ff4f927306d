#include "tern/dist/methods/replicas.h"

#include <algorithm>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/core/stopwatch.h"
#include "tern/dist/comm/failure.h"

namespace tern {
namespace {

/// A row-major copy.
Tensor copy_on_cpu(const Tensor& tensor) {
  const Tensor copy = Tensor::empty(tensor.shape(), {tensor.dtype()});
  copy.copy_from(tensor);
  return copy;
}

}  // namespace

Tensor needed_gradient(const NamedParameter& named, std::string_view method, int64_t step) {
  const Tensor gradient = named.parameter->gradient();
  check(gradient.defined(), method, ": '", named.name, "' has no gradient in step ", step,
        "; every parameter must take part in every step");
  return gradient;
}

void check_same_parameters(Communicator& communicator, const std::vector<NamedParameter>& parameters, int64_t step) {
  uint32_t crc = 0;
  for (const auto& [name, parameter] : parameters) crc = checksum(parameter->value(), crc);
  Tensor all = Tensor::empty({communicator.size()}, {.dtype = DType::i64});
  communicator.all_gather(Tensor::full({1}, crc, {.dtype = DType::i64}), all, Account::overhead).wait();
  const auto crcs = all.span<int64_t>();
  const auto votes = [&](int64_t candidate) { return std::ranges::count(crcs, candidate); };
  const int64_t common = *std::ranges::max_element(crcs, {}, votes);
  const auto odd = std::ranges::find_if(crcs, [=](int64_t other) { return other != common; });
  if (odd == crcs.end()) return;
  throw PeerError(join({"rank ", odd - crcs.begin(), ": its parameters are not those of rank ",
                        std::ranges::find(crcs, common) - crcs.begin(), " after step ", step}));
}

void check_after_round(Communicator& communicator, const std::vector<NamedParameter>& parameters, int64_t step,
                       int64_t local_steps, int64_t every) {
  const int64_t done = step + 1;
  if (every > 0 && done / every != (done - local_steps) / every) check_same_parameters(communicator, parameters, step);
}

std::vector<NamedBuffer> floating_buffers(Module& model) {
  std::vector<NamedBuffer> buffers = model.buffers();
  std::erase_if(buffers, [](const NamedBuffer& named) { return !is_floating(named.buffer->dtype()); });
  return buffers;
}

uint32_t checksum(const Tensor& tensor, uint32_t crc) {
  const Tensor here = tensor.to(Device{}).to(MemoryFormat::row_major);
  return crc32c({static_cast<const std::byte*>(here.raw_data()), here.bytes()}, crc);
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

void broadcast_buffers(Communicator& communicator, Module& model, int root) {
  for (const auto& [name, buffer] : model.buffers()) {
    Tensor host = buffer->to(Device{});
    communicator.broadcast(host, root, Account::overhead).wait();
    if (buffer->device() != Device{}) buffer->copy_from(host);
  }
}

}  // namespace tern
