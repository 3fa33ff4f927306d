#pragma once

#include <string>
#include <vector>

namespace tern {

/// While it exists, it notes in order what this process asks of the disk: "sync PATH" for fsync and fdatasync, "rename
/// PATH" with the new name. A test program that uses this class takes these functions from here, not from the C
/// library. Only one object may exist at a time.
class DiskCalls {
 public:
  DiskCalls();
  ~DiskCalls();
  DiskCalls(const DiskCalls&) = delete;
  DiskCalls& operator=(const DiskCalls&) = delete;

  static std::vector<std::string> found();
};

}  // namespace tern
