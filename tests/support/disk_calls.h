#pragma once

#include <string>
#include <vector>

namespace tern {

/// While one lives, it notes what this process asks of the disk, in order: "sync PATH" for fsync and fdatasync, "rename
/// PATH" with the new name. A test program that uses it has these functions from here instead of the C library. One at
/// a time.
class DiskCalls {
 public:
  DiskCalls();
  ~DiskCalls();
  DiskCalls(const DiskCalls&) = delete;
  DiskCalls& operator=(const DiskCalls&) = delete;

  static std::vector<std::string> found();
};

}  // namespace tern
