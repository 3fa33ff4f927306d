#include "tern/dist/comm/join.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tern/core/parallel.h"
#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/nccl.h"
#include "tern/dist/comm/tcp.h"
#include "tern/dist/comm/token.h"
#include "tern/dist/comm/transport_communicator.h"

namespace tern {
namespace {

void note_on_stderr(const std::string& text) { std::fputs(("note: " + text + '\n').c_str(), stderr); }

Job alone(Device device) {
  return {.device = device,
          .communicator = std::make_unique<TransportCommunicator>(std::move(make_in_process(1).front()))};
}

}  // namespace

Job join(DeviceType type, const Environment& environment) {
  const bool gpu = type == DeviceType::cuda;
  const auto place = find_place(environment);
  if (!place) return alone({type});
  set_thread_count(std::max(1, thread_count() / place->local_size));
  return join(*place,
              {.device = gpu ? gpu_of(*place, cuda_device_count()) : Device{}, .nccl = gpu, .note = note_on_stderr});
}

Job join(const ClusterPlace& place, const JoinOptions& options, std::optional<detail::Listener> listener) {
  auto transport = make_tcp({.rank = place.rank,
                             .size = place.size,
                             .master = place.master,
                             .token = place.local_size == place.size ? token_of_machine() : token_from_environment(),
                             .wire = options.wire.value_or(names_this_machine(place.master) ? Wire::mac : Wire::tls),
                             .epoch = place.epoch,
                             .deadlines = options.deadlines,
                             .note = options.note},
                            std::move(listener));
  if (options.link) transport = make_shaped(std::move(transport), *options.link);
  Job job = {.rank = place.rank, .size = place.size, .device = options.device, .place = place};
  if (options.nccl)
    job.communicator = make_nccl(std::move(transport),
                                 {.device = options.device, .master = place.master, .deadlines = options.deadlines});
  else
    job.communicator = std::make_unique<TransportCommunicator>(std::move(transport));
  return job;
}

}  // namespace tern
