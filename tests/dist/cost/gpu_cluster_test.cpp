#include <gtest/gtest.h>

#include <limits>

#include "tern/dist/cost/gpu_cluster.h"
#include "tern/dist/cost/round_time.h"

namespace tern::test {
namespace {

/// Two machines of four GPUs, as for Figure 5(a), whose copies to the CPU take no time.
constexpr GpuCluster kEthernet = {.machines = 2,
                                  .gpus = 4,
                                  .gpu_bandwidth = 10e9,
                                  .cpu_bandwidth = std::numeric_limits<double>::infinity(),
                                  .network_bandwidth = 125e6};
constexpr double kAlexNet = 244e6;  // bytes

// Computed by hand from equation 29: (T + 2·244/10000 + 244/125) / (T + that/16).
TEST(TernGradsModel, SpeedsAlexNetUpByWhatItsComputationLeaves) {
  const std::pair<double, double> table[] = {{0.1, 9.3}, {0.2, 6.8}, {0.4, 4.6}, {0.8, 3.03}};
  for (const auto& [seconds, speed_up] : table) {
    const ProfiledStep step = {.seconds = seconds, .images = 128, .gradient_bytes = kAlexNet};
    const double floats = weak_scaling_throughput(kEthernet, step, constant_bytes(kAlexNet));
    const double ternary = weak_scaling_throughput(kEthernet, step, constant_bytes(kAlexNet / 16));
    EXPECT_NEAR(ternary / floats, speed_up, 0.05) << seconds << " s";
  }
}

TEST(TernGradsModel, HasTheTermsOfItsEquations) {
  const GpuCluster cluster = {.machines = 8,
                              .gpus = 4,
                              .gpu_bandwidth = 10,
                              .cpu_bandwidth = 5,
                              .network_bandwidth = 2,
                              .network_latency = 0.25};
  const ProfiledStep step = {.seconds = 36, .images = 64, .gradient_bytes = 20};
  const BytesOfSum bytes = constant_bytes(20);
  const double sums = 20.0 / 10 * 2 + (0.25 + 20.0 / 2) * 3;  // log2 4, log2 8
  EXPECT_DOUBLE_EQ(communication_seconds(cluster, bytes), sums + 20.0 / 5);
  EXPECT_DOUBLE_EQ(strong_scaling_seconds(cluster, step, bytes), (36 - 4) / 32.0 + 4 + sums);
  EXPECT_DOUBLE_EQ(strong_scaling_throughput(cluster, step, bytes), 64 / (1 + 4 + sums));
  EXPECT_DOUBLE_EQ(weak_scaling_seconds(cluster, step, bytes), 36 + sums);
  EXPECT_DOUBLE_EQ(weak_scaling_throughput(cluster, step, bytes), 32 * 64 / (36 + sums));
}

TEST(TernGradsModel, IsTheProfiledStepOnOneGpu) {
  const GpuCluster alone = {.gpu_bandwidth = 10, .cpu_bandwidth = 5, .network_bandwidth = 2, .network_latency = 1};
  const ProfiledStep step = {.seconds = 7, .images = 64, .gradient_bytes = 20};
  EXPECT_DOUBLE_EQ(strong_scaling_seconds(alone, step, constant_bytes(20)), 7);
  EXPECT_DOUBLE_EQ(weak_scaling_seconds(alone, step, constant_bytes(20)), 7);
}

// PAPERS section 1A: 5, 9, 17, 33 levels need 3, 4, 5, 6 bits.
TEST(TernGradsModel, GrowsTheLevelsOfSums) {
  const BytesOfSum bytes = ternary_sum_bytes(8);
  for (const auto& [workers, bits] :
       {std::pair(1, 2.0), {2, 3.0}, {4, 4.0}, {8, 5.0}, {16, 6.0}, {64, 8.0}, {512, 11.0}})
    EXPECT_EQ(bytes(workers), bits) << workers;
  const GpuCluster cluster = {.machines = 4,
                              .gpus = 2,
                              .gpu_bandwidth = 1,
                              .cpu_bandwidth = std::numeric_limits<double>::infinity(),
                              .network_bandwidth = 10};
  EXPECT_DOUBLE_EQ(communication_seconds(cluster, bytes), 2 + 3 / 10.0 + 4 / 10.0);
}

/// A message of one collective: an element to code, `bytes` to send, an element to read.
PlannedMessage message(double encode, double bytes, double decode) {
  const ExchangePhase phase = {.encoded = 1, .wire = {.busiest = bytes, .hops = 1, .sent = 1}, .decoded = 1};
  return {{{phase}}, {encode, decode}};
}

void expect_times(const ExchangeTimes& found, const ExchangeTimes& expected) {
  EXPECT_DOUBLE_EQ(found.encode, expected.encode);
  EXPECT_DOUBLE_EQ(found.wait, expected.wait);
  EXPECT_DOUBLE_EQ(found.decode, expected.decode);
}

TEST(RoundTime, IsCodingTravellingAndReadingOfOneMessage) {
  expect_times(round_time(std::vector{message(2, 30, 5)}, {.hop = 1, .byte = 0.5}), {2, 16, 5});
}

// Coded at 2 and 4, on the cable from 2 to 18 and on to 34; the first is read from 18 to 23, and the second waits 11.
TEST(RoundTime, CodesOneMessageWhileAnotherTravels) {
  const std::vector<PlannedMessage> two(2, message(2, 30, 5));
  expect_times(round_time(two, {.hop = 1, .byte = 0.5}), {4, 14 + 11, 10});
}

TEST(RoundTime, WaitsForNoCableThatIsFasterThanItsCodecs) {
  const std::vector<PlannedMessage> three(3, message(2, 1, 5));
  expect_times(round_time(three, {.byte = 0.5}), {6, 0, 15});
}

// Scalers come before a message can be coded, and with them the message before it.
TEST(RoundTime, SendsWhatAMessageNeedsFirst) {
  PlannedMessage shared = message(2, 30, 5);
  shared.plan.phases.insert(shared.plan.phases.begin(), {.wire = {.busiest = 4, .hops = 2, .sent = 1}});
  shared.plan.under_way = 1;
  // 4 s of scalers, 2 of coding, 16 of travelling; again, once that cable is free; then the second one's own 16.
  const std::vector<PlannedMessage> two(2, shared);
  expect_times(round_time(two, {.hop = 1, .byte = 0.5}), {4, 4 + 20 + 11, 10});
}

}  // namespace
}  // namespace tern::test
