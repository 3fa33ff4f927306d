#include "tern/dist/buffers.h"

namespace tern {

std::vector<NamedBuffer> floating_buffers(Module& model) {
  std::vector<NamedBuffer> buffers = model.buffers();
  std::erase_if(buffers, [](const NamedBuffer& named) { return named.buffer->dtype() == DType::i64; });
  return buffers;
}

void broadcast_buffers(Communicator& communicator, Module& model, int root) {
  for (const auto& [name, buffer] : model.buffers()) {
    const Tensor host = buffer->to(Device{});
    communicator.broadcast(host, root, Account::overhead).wait();
    if (buffer->device() != Device{}) buffer->copy_from(host);
  }
}

}  // namespace tern
