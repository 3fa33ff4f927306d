#include <cstdlib>
#include <string_view>

#include "tern/core/error.h"
#include "tern/trainer/job/flight.h"
#include "tests/fuzz/input_file.h"

// Reads any bytes as a flight record. It is read, or refused with an InputError.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const tern::FlightRecord record = tern::trainer::read_flight_file(tern::input_file(bytes)).record;
    if (record.rank < 0 || record.rank >= record.size) std::abort();
    tern::trainer::last_operation(record);
  } catch (const tern::InputError&) {
  }
  return 0;
}
