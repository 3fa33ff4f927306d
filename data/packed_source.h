#pragma once

#include "tern/data/byte_source.h"

namespace tern {

/// What `file` unpacks to; its checksums are held against it.
std::unique_ptr<ByteSource> gzip_source(std::string name, std::vector<uint8_t> file);
std::unique_ptr<ByteSource> xz_source(std::string name, std::vector<uint8_t> file);

}  // namespace tern
