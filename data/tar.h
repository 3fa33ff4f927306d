#pragma once

#include <memory>

#include "tern/data/byte_source.h"

namespace tern {

/// The files of a tar archive, in the order of the archive. One thread uses it.
class TarArchive {
 public:
  explicit TarArchive(std::unique_ptr<ByteSource> archive);
  ~TarArchive();

  /// The next regular file; its name is "FILE.tar: PATH". Read it before the next call. Returns null at the end; by
  /// then the checksum of a packed archive has been verified. Throws InputError if the archive is damaged.
  std::unique_ptr<ByteSource> next();

 private:
  struct Reader;
  class Member;

  std::unique_ptr<Reader> reader_;
};

}  // namespace tern
