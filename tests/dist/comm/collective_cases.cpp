#include "tests/dist/comm/collective_cases.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace tern::test {
namespace {

using Counts = std::vector<int64_t>;

/// Element i of rank r's input. The values are small integers, so that float sums are exact in any order.
float value(int rank, int64_t i) { return static_cast<float>(i % 17 + 100 * (rank + 1)); }

Tensor values(int rank, int64_t begin, int64_t end, Device device = {}) {
  std::vector<float> elements;
  for (int64_t i = begin; i < end; ++i) elements.push_back(value(rank, i));
  return Tensor::from<float>({end - begin}, elements).to(device);
}

/// Elements [begin, end) of the sum over n ranks.
std::vector<float> sums(int n, int64_t begin, int64_t end) {
  std::vector<float> expected;
  for (int64_t i = begin; i < end; ++i) expected.push_back(static_cast<float>(n * (i % 17) + 50 * n * (n + 1)));
  return expected;
}

Tensor nothing(int64_t count, Device device = {}) { return Tensor::full({count}, -1, {.device = device}); }

/// Parts of different sizes. Rank 1's part is empty.
Counts uneven(int n, int64_t count) {
  Counts counts(n);
  for (int r = 0; r < n; ++r) counts[r] = r == 1 ? 0 : count + r;
  return counts;
}

int64_t sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

std::vector<float> parts_of_all(const Counts& counts) {
  std::vector<float> expected;
  for (size_t r = 0; r < counts.size(); ++r)
    for (int64_t i = 0; i < counts[r]; ++i) expected.push_back(value(static_cast<int>(r), i));
  return expected;
}

void check_reductions(Communicator& c, int64_t count, Device device) {
  const int n = c.size();
  Tensor x = values(c.rank(), 0, count, device), largest = x.clone();
  const Tensor whole = x.clone();
  const int64_t begin = count * c.rank() / n, end = count * (c.rank() + 1) / n;
  Tensor part = nothing(end - begin, device);
  const Work first = c.all_reduce(x), second = c.all_reduce(largest, Reduction::max),
             third = c.reduce_scatter(whole, part);
  first.wait();
  second.wait();
  third.wait();
  EXPECT_EQ(x.to_vector<float>(), sums(n, 0, count));
  EXPECT_EQ(largest.to_vector<float>(), values(n - 1, 0, count).to_vector<float>());
  EXPECT_EQ(part.to_vector<float>(), sums(n, begin, end));
  EXPECT_EQ(whole.to_vector<float>(), values(c.rank(), 0, count).to_vector<float>());
}

void check_copies(Communicator& c, int64_t count, Device device) {
  const int n = c.size(), root = n - 1;
  Tensor x = values(c.rank(), 0, count, device);
  c.broadcast(x, root).wait();
  EXPECT_EQ(x.to_vector<float>(), values(root, 0, count).to_vector<float>());
  Tensor y = values(c.rank(), 0, count, device);
  c.fan_out(y, root).wait();
  EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());

  for (const Counts& counts : {Counts(n, count), uneven(n, count)}) {
    const bool equal = counts == Counts(n, count);
    const Tensor mine = values(c.rank(), 0, counts[c.rank()], device);
    Tensor all = nothing(sum(counts), device), at_root = nothing(sum(counts), device);
    (equal ? c.all_gather(mine, all) : c.all_gather(mine, all, counts)).wait();
    EXPECT_EQ(all.to_vector<float>(), parts_of_all(counts));
    (equal ? c.gather(mine, at_root, root) : c.gather(mine, at_root, root, counts)).wait();
    if (c.rank() == root) {
      EXPECT_EQ(at_root.to_vector<float>(), parts_of_all(counts));
    }
    Tensor back = nothing(counts[c.rank()], device);
    (equal ? c.scatter(at_root, back, root) : c.scatter(at_root, back, root, counts)).wait();
    EXPECT_EQ(back.to_vector<float>(), mine.to_vector<float>());
  }
}

void check_shift(Communicator& c, int64_t count, Device device) {
  // The ranks pass on different numbers of elements.
  const int previous = (c.rank() + c.size() - 1) % c.size();
  Tensor y = nothing(count + previous, device);
  c.shift(values(c.rank(), 0, count + c.rank(), device), y).wait();
  EXPECT_EQ(y.to_vector<float>(), values(previous, 0, count + previous).to_vector<float>());
}

void check_all_to_all(Communicator& c, int64_t count, Device device) {
  const int n = c.size();
  // Rank r sends to rank s the elements from 1000 s on. All parts have `count` elements first, and then count + r + 2
  // s.
  for (const int more : {0, 1}) {
    Counts sends, receives;
    std::vector<float> sent, expected;
    for (int peer = 0; peer < n; ++peer) {
      sends.push_back(count + more * (c.rank() + 2 * peer));
      receives.push_back(count + more * (peer + 2 * c.rank()));
      for (int64_t i = 0; i < sends.back(); ++i) sent.push_back(value(c.rank(), 1000 * peer + i));
      for (int64_t i = 0; i < receives.back(); ++i) expected.push_back(value(peer, 1000 * c.rank() + i));
    }
    const Tensor x = Tensor::from<float>({sum(sends)}, sent).to(device);
    Tensor y = nothing(sum(receives), device);
    (more ? c.all_to_all(x, sends, y, receives) : c.all_to_all(x, y)).wait();
    EXPECT_EQ(y.to_vector<float>(), expected);
  }
}

}  // namespace

void check_closed_forms(Communicator& c, Device device) {
  for (const int64_t count : {0, 1, 7, 1000, 100003}) {
    SCOPED_TRACE(std::to_string(count) + " elements");
    check_reductions(c, count, device);
    check_copies(c, count, device);
    check_all_to_all(c, count, device);
    check_shift(c, count, device);
    c.barrier().wait();
  }
}

std::vector<float> rounded_sums(Communicator& c, int64_t count, Device device) {
  std::vector<float> elements;
  for (int64_t i = 0; i < count; ++i) elements.push_back(1.0f / static_cast<float>(1 + i * (c.rank() + 3)));
  Tensor x = Tensor::from<float>({count}, elements).to(device);
  c.all_reduce(x).wait();
  return x.to_vector<float>();
}

void check_dtypes(Communicator& c, Device device) {
  const int n = c.size();
  for (const DType dtype : {DType::f64, DType::bf16, DType::i64}) {
    Tensor x = Tensor::full({9}, c.rank() + 1, {.dtype = dtype, .device = device}),
           y = Tensor::full({9}, -c.rank(), {.dtype = dtype, .device = device});
    c.all_reduce(x).wait();
    c.all_reduce(y, Reduction::max).wait();
    EXPECT_EQ(x.to_vector<double>(), std::vector<double>(9, n * (n + 1) / 2));
    EXPECT_EQ(y.to_vector<double>(), std::vector<double>(9, 0));
  }
  Tensor bytes = Tensor::full({3}, c.rank(), {.dtype = DType::u8, .device = device});
  c.broadcast(bytes, 0).wait();
  EXPECT_EQ(bytes.to_vector<int64_t>(), std::vector<int64_t>(3, 0));
}

void check_payload(Communicator& c, Device device) {
  const int n = c.size();
  const int64_t count = 840 * n;
  Tensor x = values(c.rank(), 0, count, device), all = nothing(n * count, device);
  Tensor part = nothing(840, device), arrived = nothing(count, device);
  const auto payload_of = [&](const auto& operation) {
    const Traffic before = c.traffic();
    operation().wait();
    return (c.traffic() - before).sent_payload;
  };
  EXPECT_EQ(payload_of([&] { return c.all_reduce(x); }), 2u * (n - 1) * 840 * 4);
  EXPECT_EQ(payload_of([&] { return c.reduce_scatter(x, part); }), (n - 1) * 840u * 4);
  EXPECT_EQ(payload_of([&] { return c.all_gather(x, all); }), (n - 1) * 4u * count);
  EXPECT_EQ(payload_of([&] { return c.all_to_all(x, arrived); }), (n - 1) * 840u * 4);
  EXPECT_EQ(payload_of([&] { return c.broadcast(x, 0); }), c.rank() == n - 1 ? 0u : 4u * count);
  EXPECT_EQ(payload_of([&] { return c.fan_out(x, 0); }), c.rank() == 0 ? (n - 1) * 4u * count : 0u);
  EXPECT_EQ(payload_of([&] { return c.shift(x, arrived); }), n == 1 ? 0u : 4u * count);
  EXPECT_EQ(payload_of([&] { return c.all_reduce(x, Reduction::max, Account::overhead); }), 0u);
}

/// So that a tensor that an operation saved is known to be another one (Saved).
void check_writes(Communicator& c, Device device) {
  const auto writes = [](const Tensor& tensor, const auto& operation) {
    const uint32_t before = tensor.version();
    operation().wait();
    return tensor.version() - before;
  };
  Tensor x = values(c.rank(), 0, 4, device), all = nothing(c.size() * 4, device);
  EXPECT_GT(writes(x, [&] { return c.all_reduce(x); }), 0u);
  EXPECT_GT(writes(x, [&] { return c.broadcast(x, 0); }), 0u);
  EXPECT_EQ(writes(x, [&] { return c.all_gather(x, all); }), 0u);
  EXPECT_GT(writes(all, [&] { return c.all_gather(x, all); }), 0u);
}

}  // namespace tern::test
