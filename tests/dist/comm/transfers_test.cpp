#include "tern/dist/comm/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tern/core/random.h"
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
      for (const int64_t count : {0, 1, 7, 100, 1000, (2 << 20) + 1}) call_all(auditor, count);
    });
    EXPECT_EQ(errors, std::vector<std::string>(ranks));
  }
}

/// What `run(collective)` gives on each rank.
template <class Run>
std::vector<std::vector<float>> on_each(int ranks, const Run& run) {
  auto transports = make_in_process(ranks);
  std::vector<std::vector<float>> found(ranks);
  const auto errors = on_ranks(ranks, [&](int rank) {
    const Tensor result = run(detail::Collective{*transports[rank], {.sequence = 1, .dtype = DType::f32}});
    found[rank] = result.to_vector<float>();
  });
  EXPECT_EQ(errors, std::vector<std::string>(ranks));
  return found;
}

std::span<std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.raw_data()), tensor.bytes()};
}

/// The largest difference of two elements; infinity if the sizes differ.
double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  return most;
}

TEST(Transfers, GiveTheSameDirectlyAndAroundTheRing) {
  for (const int ranks : {1, 2, 3, 4, 7})
    for (const int64_t count : {0, 1, 5, 1000, 1'500'003}) {  // the last has parts of several pieces
      if (count > 1000 && ranks > 3) continue;
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << count);
      const auto x_of = [&](int rank) {
        const RandomStream random({.seed = 1, .purpose = Purpose::test, .tensor = static_cast<uint32_t>(rank)});
        Tensor x = Tensor::empty({count});
        for (int64_t i = 0; i < count; ++i) x.data<float>()[i] = 2 * random.uniform(static_cast<uint64_t>(i)) - 1;
        return x;
      };
      const auto all_reduce = [&](auto algorithm) {
        return on_each(ranks, [&](const detail::Collective& c) {
          const Tensor x = x_of(c.rank());
          algorithm(c, bytes_of(x), Reduction::sum);
          return x;
        });
      };
      const auto expected = all_reduce(detail::ring_all_reduce);
      const auto found = all_reduce(detail::direct_all_reduce);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(found[rank], found[0]);
        EXPECT_LT(farthest(found[rank], expected[rank]), 1e-6);
      }
      EXPECT_EQ(all_reduce(detail::one_message_all_reduce), found);
      std::vector<float> sum(static_cast<size_t>(count));
      for (int rank = 0; rank < ranks; ++rank)
        for (size_t i = 0; const float x : x_of(rank).to_vector<float>()) sum[i++] += x;
      EXPECT_LT(farthest(expected[0], sum), 1e-5);
      detail::Cuts cuts = {0};  // uneven: rank 0 has nothing
      for (int rank = 0; rank < ranks; ++rank) cuts.push_back(rank + 1 == ranks ? count : count * rank / ranks);
      const auto reduce_scatter = [&](auto algorithm) {
        return on_each(ranks, [&](const detail::Collective& c) {
          const Tensor y = Tensor::empty({cuts[c.rank() + 1] - cuts[c.rank()]});
          algorithm(c, bytes_of(x_of(c.rank())), bytes_of(y), cuts);
          return y;
        });
      };
      const auto parts = reduce_scatter(detail::direct_reduce_scatter),
                 expected_parts = reduce_scatter(detail::ring_reduce_scatter);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_LT(farthest(parts[rank], expected_parts[rank]), 1e-6);
      }
      const auto all_gather = [&](auto algorithm) {
        return on_each(ranks, [&](const detail::Collective& c) {
          const Tensor x = x_of(c.rank()).slice(cuts[c.rank()], cuts[c.rank() + 1]), y = Tensor::empty({count});
          algorithm(c, bytes_of(x), bytes_of(y), cuts);
          return y;
        });
      };
      EXPECT_EQ(all_gather(detail::direct_all_gather), all_gather(detail::ring_all_gather));
    }
}

}  // namespace
}  // namespace tern::test
