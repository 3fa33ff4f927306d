#include "tern/kernels/reduction.h"

#include <gtest/gtest.h>

#include "tern/core/parallel.h"
#include "tern/core/random.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

TEST(Sum, AddsWhereTheOutputHasExtentOne) {
  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor columns = empty_f64({1, 3}), rows = empty_f64({2, 1}), all = empty_f64({1, 1});
  sum(x, 1, columns);
  expect_values(columns, {5, 7, 9});
  sum(x, 0.5, rows);
  expect_values(rows, {3, 7.5});
  sum(x, 1, all);
  expect_values(all, {21});
  EXPECT_EQ(message_of<Error>([&] { sum(columns, 1, rows); }), "sum: shape [2, 1] does not repeat to [1, 3]");
}

struct SumPattern {
  Shape large, small;
  MemoryFormat format = MemoryFormat::row_major;
};

// At most 256 elements are added in f32, so the relative error is at most 256 · 2^-24, even without vectors.
TEST(Sum, IsPreciseOverManyEqualElements) {
  for (const auto& [large, small, format] : {SumPattern{{2, 1000, 2, 1000}, {2, 1, 2, 1}},
                                             {{2000, 2, 500, 2, 1}, {1, 2, 1, 2, 1}},
                                             {{500, 2, 2, 500}, {1, 2, 2, 1}, MemoryFormat::channels_last},
                                             {{1000000, 2}, {1, 2}},
                                             {{2, 1000000}, {2, 1}},
                                             {{2000000}, {1}}}) {
    SCOPED_TRACE(to_string(large) + " to " + to_string(small));
    const Tensor x = Tensor::full(large, 0.1, {.format = format});
    Tensor y = Tensor::empty(small);
    sum(x, static_cast<double>(small.numel()) / static_cast<double>(large.numel()), y);
    expect_values(y, Values(static_cast<size_t>(small.numel()), 0.1), 0.1 * 256 * 0x1p-24);
  }
}

TEST(Sum, HasTheSameBitsForEveryNumberOfThreads) {
  const RandomStream random({.seed = 4, .purpose = Purpose::test});
  const int before = thread_count();
  for (const auto& [large, small, format] : {SumPattern{{30, 20, 30, 20}, {30, 1, 30, 1}},
                                             {{30, 20, 30, 20}, {1, 20, 1, 20}},
                                             {{30, 20, 30, 20}, {30, 20, 30, 1}, MemoryFormat::channels_last},
                                             {{30, 20, 30, 20}, {1, 20, 1, 1}, MemoryFormat::channels_last},
                                             {{40000, 9}, {1, 9}},
                                             {{9, 40000}, {9, 1}},
                                             {{360000}, {1}}}) {
    SCOPED_TRACE(to_string(large) + " to " + to_string(small));
    Tensor x = Tensor::empty(large);
    for (size_t i = 0; i < x.span<float>().size(); ++i) x.span<float>()[i] = random.normal(i);
    x = x.to(format);
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 7}) {
      set_thread_count(threads);
      Tensor y = Tensor::empty(small);
      sum(x, 1, y);
      if (threads == 1) first = y.to_vector<float>();
      EXPECT_EQ(y.to_vector<float>(), first) << "threads: " << threads;
    }
  }
  set_thread_count(before);
}

TEST(BroadcastTo, RepeatsWhereTheInputHasExtentOne) {
  Tensor y = empty_f64({2, 3});
  broadcast_to(f64({2, 1}, {1, 2}), 10, y);
  expect_values(y, {10, 10, 10, 20, 20, 20});
}

}  // namespace
}  // namespace tern::kernels
