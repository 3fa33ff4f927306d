#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <lzma.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

// Makes the bytes of files, good and bad ones.
namespace tern {

using Bytes = std::vector<uint8_t>;

inline Bytes gzip(Bytes bytes, int level = 9) {
  z_stream stream = {};
  deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, bytes.size()));
  stream.next_in = bytes.data();
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline Bytes xz(const Bytes& bytes) {
  Bytes packed(lzma_stream_buffer_bound(bytes.size()));
  size_t size = 0;
  lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, nullptr, bytes.data(), bytes.size(), packed.data(), &size,
                          packed.size());
  packed.resize(size);
  return packed;
}

inline Bytes tar(const std::vector<std::pair<std::string, Bytes>>& files) {
  size_t size = 0;
  Bytes packed(1 << 20);
  for (const auto& [name, bytes] : files) packed.resize(packed.size() + bytes.size());
  archive* writer = archive_write_new();
  archive_write_set_format_ustar(writer);
  archive_write_open_memory(writer, packed.data(), packed.size(), &size);
  for (const auto& [name, bytes] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, name.ends_with('/') ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_write_header(writer, entry);
    archive_write_data(writer, bytes.data(), bytes.size());
    archive_entry_free(entry);
  }
  archive_write_free(writer);
  packed.resize(size);
  return packed;
}

inline Bytes cut(Bytes bytes, size_t size) {
  bytes.resize(size);
  return bytes;
}

inline Bytes with(Bytes bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

inline Bytes flipped(Bytes bytes, size_t byte) {
  bytes[byte] ^= 4;
  return bytes;
}

inline void write(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace tern
