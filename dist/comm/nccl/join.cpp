#include <array>
#include <cstdlib>
#include <cstring>

#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/nccl/communicator.h"
#include "tern/dist/comm/nccl/interface.h"

namespace tern {
namespace nccl {
namespace {

/// What a rank tells the other ranks before it calls NCCL.
struct Seat {
  std::array<char, sizeof(cudaUUID_t)> device = {};
  int32_t index = 0;
  int32_t version = 0;
};

Seat seat_on(Device device) {
  Seat seat = {.index = device.index};
  cudaDeviceProp properties;
  cuda::check_cuda(cudaGetDeviceProperties(&properties, device.index), "nccl");
  std::memcpy(seat.device.data(), &properties.uuid, seat.device.size());
  check_nccl(library().get_version(&seat.version), "version");
  return seat;
}

Tensor bytes_of(const void* data, size_t size) {
  return Tensor::from<uint8_t>({static_cast<int64_t>(size)}, std::span(static_cast<const uint8_t*>(data), size));
}

/// Checks GPUs and NCCL versions. NCCL itself only reports "Duplicate GPU detected", and nothing about versions.
void check_seats(Communicator& host, Device device) {
  const Seat own = seat_on(device);
  std::vector<Seat> seats(host.size());
  Tensor all = Tensor::empty({static_cast<int64_t>(seats.size() * sizeof own)}, {.dtype = DType::u8});
  host.all_gather(bytes_of(&own, sizeof own), all, Account::overhead).wait();
  std::memcpy(seats.data(), all.raw_data(), all.bytes());
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    if (seats[rank].version != seats[0].version)
      throw PeerError(join({"rank ", rank, ": NCCL version ", seats[rank].version, ", rank 0: ", seats[0].version}));
    for (size_t other = 0; other < rank; ++other)
      check_input(seats[other].device != seats[rank].device, "NCCL: ranks ", other, " and ", rank,
                  " are both on one GPU (cuda:", seats[rank].index, "), expected a GPU for each rank");
  }
}

void set_environment(const Address& master) {
  check_input(std::getenv("NCCL_COMM_ID") == nullptr,
              "NCCL_COMM_ID is set; unset it: the ranks agree on their own id, so that no other process can join");
  const char* const blocking = std::getenv("NCCL_COMM_BLOCKING");
  check_input(blocking == nullptr || std::string_view(blocking) == "0", "NCCL_COMM_BLOCKING is ", blocking,
              "; unset it: with it, NCCL waits for a lost rank without a deadline");
  const std::string name = interface_towards(master);
  // Many machines resolve their own name to a loopback address. Other machines cannot reach that address.
  if (!name.empty() && (name != "lo" || names_this_machine(master)))
    ::setenv("NCCL_SOCKET_IFNAME", ("=" + name).c_str(), 0);
}

ncclUniqueId agree_on_id(Communicator& host) {
  ncclUniqueId id = {};
  if (host.rank() == 0) check_nccl(library().get_unique_id(&id), "id");
  Tensor bytes = bytes_of(&id, sizeof id);
  host.broadcast(bytes, 0, Account::overhead).wait();
  std::memcpy(&id, bytes.raw_data(), sizeof id);
  return id;
}

}  // namespace
}  // namespace nccl

std::unique_ptr<Communicator> make_nccl(std::unique_ptr<Transport> transport, const NcclOptions& options) {
  check_input(options.device.type == DeviceType::cuda, "NCCL: found device ", options.device,
              ", expected a cuda device");
  device_backend(options.device);  // throws its own error if there is no CUDA
  nccl::library();
  nccl::set_environment(options.master);
  auto host = std::make_unique<TransportCommunicator>(std::move(transport));
  nccl::check_seats(*host, options.device);
  const ncclUniqueId id = nccl::agree_on_id(*host);
  return std::make_unique<nccl::NcclCommunicator>(std::move(host), id, options);
}

}  // namespace tern
