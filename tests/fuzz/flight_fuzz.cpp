#include <cstdlib>
#include <string_view>
#include <vector>

#include "tern/apps/advise/postmortem.h"
#include "tern/core/error.h"
#include "tern/trainer/rank/flight.h"
#include "tests/fuzz/input_file.h"

// Reads any bytes as a flight record. It is read, or refused with an InputError. A record that is read is examined and
// drawn, alone and beside itself as another rank's.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const tern::trainer::FlightFile file = tern::trainer::read_flight_file(tern::input_file(bytes));
    if (file.record.rank < 0 || file.record.rank >= file.record.size) std::abort();
    std::vector<tern::trainer::FlightFile> files = {file};
    if (file.record.size > 1) {
      files.push_back(file);
      files.back().record.rank = (file.record.rank + 1) % file.record.size;
      files.back().record.job.clock.reset();  // so the calendar counts
    }
    for (; !files.empty(); files.pop_back()) {
      const tern::advise::Postmortem postmortem(files);
      postmortem.page();
      draw_timeline(postmortem);
    }
  } catch (const tern::InputError&) {
  }
  return 0;
}
