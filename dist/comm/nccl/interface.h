#pragma once

#include <string>

#include "tern/dist/comm/address.h"

namespace tern::nccl {

/// The network interface by which this machine reaches `address` ("eth0"), or has it; empty where none is found.
std::string interface_towards(const Address& address);

}  // namespace tern::nccl
