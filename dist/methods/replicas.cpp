#include "tern/dist/methods/replicas.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/methods/tensors.h"

namespace tern {

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

void broadcast_buffers(Communicator& communicator, Module& model, int root) {
  for (const auto& [name, buffer] : model.buffers()) {
    Tensor host = buffer->to(Device{});
    communicator.broadcast(host, root, Account::overhead).wait();
    if (buffer->device() != Device{}) buffer->copy_from(host);
  }
}

}  // namespace tern
