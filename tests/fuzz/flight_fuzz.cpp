#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tern/core/error.h"
#include "tern/trainer/job/flight.h"

// Reads any bytes as a flight record. It is read, or refused with an InputError.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("tern-flight-fuzz-" + std::to_string(::getpid()));
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const tern::FlightRecord record = tern::trainer::read_flight_file(file).record;
    if (record.rank < 0 || record.rank >= record.size) std::abort();
    tern::trainer::last_operation(record);
  } catch (const tern::InputError&) {
  }
  return 0;
}
