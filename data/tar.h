#pragma once

#include <memory>

#include "tern/data/byte_source.h"

namespace tern {

/// The files of a tar archive, in its order. Used by one thread.
class TarArchive {
 public:
  explicit TarArchive(std::unique_ptr<ByteSource> archive);
  ~TarArchive();

  /// The next regular file, to be read before the next call, named as in "FILE.tar: PATH"; null at the end, which is
  /// where a packed archive's checksum has been held against it. An InputError where the archive is damaged.
  std::unique_ptr<ByteSource> next();

 private:
  struct Reader;
  class Member;

  std::unique_ptr<Reader> reader_;
};

}  // namespace tern
