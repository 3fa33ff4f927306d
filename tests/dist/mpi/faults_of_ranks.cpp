#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "tests/dist/mpi/job.h"

namespace tern::test {
namespace {

void sum_ones(Communicator& c, int64_t count) {
  Tensor x = Tensor::full({count}, 1);
  c.all_reduce(x).wait();
}

/// What rank 1 does while the others add up ten ones.
const std::map<std::string, std::function<void(Communicator&)>> kFaults = {
    {"adds-more", [](Communicator& c) { sum_ones(c, 11); }},
    {"broadcasts",
     [](Communicator& c) {
       Tensor x = Tensor::full({10}, 1);
       c.broadcast(x, 0).wait();
     }},
    {"hangs", [](Communicator&) { std::this_thread::sleep_for(std::chrono::minutes(1)); }},
    {"is-stopped", [](Communicator&) { std::raise(SIGSTOP); }},
    {"is-killed", [](Communicator&) { std::raise(SIGKILL); }},
    {"leaves", [](Communicator&) {}},
    {"gives-up", [](Communicator& c) { c.abandon("out of luck"); }},
};

}  // namespace

bool break_job(const std::string& name) {
  Communicator& c = mpi_job();
  // All ranks have used these kinds of operations before.
  sum_ones(c, 10);
  Tensor x = Tensor::full({10}, 1);
  c.broadcast(x, 0).wait();
  if (name == "passes-on-more" || name == "passes-on-less") {
    Tensor y = Tensor::full({7}, 0);
    const int64_t unlike = name == "passes-on-more" ? 8 : 6;
    c.shift(Tensor::full({c.rank() == 0 ? unlike : 7}, 1), y).wait();
    return true;
  }
  const auto fault = kFaults.find(name);
  if (fault == kFaults.end()) return false;
  if (c.rank() == 1)
    fault->second(c);
  else
    sum_ones(c, 10);
  return true;
}

}  // namespace tern::test
