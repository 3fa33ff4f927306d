#pragma once

#include <string>

namespace tern {

/// While one lives, no other run writes into the same checkpoint folder: a lock on the folder, which ends with the
/// process at the latest. Nothing is held on file systems that do not lock folders, as over NFS.
class RunLock {
 public:
  /// Makes the folder where it is not there; where it stays empty it goes with the lock. An InputError where another
  /// run is at work in it.
  explicit RunLock(const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  std::string folder_;
  bool made_;
  int descriptor_ = -1;
};

}  // namespace tern
