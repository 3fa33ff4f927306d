#pragma once

#include <string>

#include "tern/dist/comm/address.h"

namespace tern::nccl {

/// The network interface ("eth0") through which this machine reaches `address`, or that has this address itself. Empty
/// if there is none.
std::string interface_towards(const Address& address);

}  // namespace tern::nccl
