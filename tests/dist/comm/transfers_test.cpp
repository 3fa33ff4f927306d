#include "tern/dist/comm/collectives.h"

#include <gtest/gtest.h>

#include "tests/dist/comm/job.h"

namespace tern::test {
namespace {

/// Compares the bytes that each call is expected to move with those that the transport counts.
class Auditor final : public Communicator {
 public:
  explicit Auditor(std::unique_ptr<Transport> transport) : inner_(std::move(transport)) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Traffic traffic() const override { return inner_.traffic(); }
  JobState state() const override { return inner_.state(); }
  FlightRecord flight_record() const override { return inner_.flight_record(); }
  void abandon(const std::string& cause) override { inner_.abandon(cause); }

 private:
  static bool is_collective(Operation operation) {
    return operation == Operation::broadcast || operation == Operation::all_reduce_sum ||
           operation == Operation::all_reduce_max || operation == Operation::reduce_scatter ||
           operation == Operation::all_gather;
  }

  Work start(const CollectiveCall& call) override {
    const Traffic before = traffic();
    const Work work = inner_.start(call);
    work.wait();
    const Traffic counted = traffic() - before;
    const detail::Volume moved = is_collective(call.message.operation)
                                     ? detail::moved_collectively(call, rank(), size())
                                     : detail::moved_directly(call, rank(), size());
    const uint64_t width = size_of(call.message.dtype);
    EXPECT_EQ(moved.sent * width, counted.sent_payload) << to_string(call.message) << " on rank " << rank();
    EXPECT_EQ(moved.received * width, counted.received_payload) << to_string(call.message) << " on rank " << rank();
    return work;
  }

  TransportCommunicator inner_;
};

Tensor some(int64_t count, DType dtype = DType::f32) { return Tensor::zeros({count}, {.dtype = dtype}); }

void call_all(Communicator& c, int64_t count) {
  const int n = c.size(), root = n / 2;
  std::vector<int64_t> uneven(n), sends(n), receives(n);
  int64_t whole = 0, sent = 0, received = 0;
  for (int peer = 0; peer < n; ++peer) {
    whole += uneven[peer] = peer == 1 ? 0 : count + peer;
    sent += sends[peer] = count + c.rank() + 2 * peer;
    received += receives[peer] = count + peer + 2 * c.rank();
  }
  Tensor x = some(count), wide = some(count, DType::f64);
  c.broadcast(x, root);
  c.fan_out(x, root);
  c.all_reduce(wide);
  c.all_reduce(x, Reduction::max);
  Tensor part = some(count * (c.rank() + 1) / n - count * c.rank() / n);
  c.reduce_scatter(x, part);
  Tensor bytes = some(whole, DType::u8);
  c.all_gather(some(uneven[c.rank()], DType::u8), bytes, uneven);
  Tensor arrived = some(received);
  c.all_to_all(some(sent), sends, arrived, receives);
  Tensor mine = some(uneven[c.rank()]), all = some(whole);
  c.scatter(all, mine, root, uneven);
  c.gather(mine, all, root, uneven);
  Tensor previous = some(count + (c.rank() + n - 1) % n);
  c.shift(some(count + c.rank()), previous);
}

TEST(Transfers, SayWhatTransportsCount) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    auto transports = make_in_process(ranks);
    const auto errors = on_ranks(ranks, [&](int rank) {
      Auditor auditor(std::move(transports[rank]));
      for (const int64_t count : {0, 1, 7, 1000, 65'536, 65'537, 100'000}) call_all(auditor, count);
    });
    EXPECT_EQ(errors, std::vector<std::string>(ranks));
  }
}

}  // namespace
}  // namespace tern::test
