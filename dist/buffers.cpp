#include "tern/dist/buffers.h"

namespace tern {

void broadcast_buffers(Communicator& communicator, Module& model, int root) {
  for (const auto& [name, buffer] : model.buffers()) {
    const Tensor host = buffer->to(Device{});
    communicator.broadcast(host, root, Account::overhead).wait();
    if (buffer->device() != Device{}) buffer->copy_from(host);
  }
}

}  // namespace tern
