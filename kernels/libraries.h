#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tern::kernels {

/// The vendor libraries that the fast CPU kernels run on, with their versions: {"onednn", "2.6.3"}, ...; empty where
/// the build has none.
std::vector<std::pair<std::string, std::string>> cpu_libraries();

}  // namespace tern::kernels
