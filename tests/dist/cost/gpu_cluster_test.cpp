#include <gtest/gtest.h>

#include <limits>

#include "tern/core/error.h"
#include "tern/dist/cost/gpu_cluster.h"
#include "tern/dist/cost/round_time.h"

namespace tern::test {
namespace {

/// Two machines of four GPUs, as for Figure 5(a). Their copies to the CPU take no time.
constexpr GpuCluster kEthernet = {.machines = 2,
                                  .gpus = 4,
                                  .gpu_bandwidth = 10e9,
                                  .cpu_bandwidth = std::numeric_limits<double>::infinity(),
                                  .network_bandwidth = 125e6};
constexpr double kAlexNet = 244e6;  // bytes

// Calculated by hand from equation 29: (T + 2·244/10000 + 244/125), divided by the same expression with a sixteenth of
// the bytes.
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
  const double sums = 20.0 / 10 * 2 + (0.25 + 20.0 / 2) * 3;  // log2 4 rounds in a machine, log2 8 between machines
  EXPECT_DOUBLE_EQ(communication_seconds(cluster, bytes), sums + 20.0 / 5);
  EXPECT_DOUBLE_EQ(weak_scaling_seconds(cluster, step, bytes), 36 + sums);
  EXPECT_DOUBLE_EQ(weak_scaling_throughput(cluster, step, bytes), 32 * 64 / (36 + sums));
}

TEST(TernGradsModel, IsTheProfiledStepOnOneGpu) {
  const GpuCluster alone = {.gpu_bandwidth = 10, .cpu_bandwidth = 5, .network_bandwidth = 2, .network_latency = 1};
  const ProfiledStep step = {.seconds = 7, .images = 64, .gradient_bytes = 20};
  EXPECT_DOUBLE_EQ(weak_scaling_seconds(alone, step, constant_bytes(20)), 7);
}

// Sums of 2, 4, 8 and 16 workers have 5, 9, 17 and 33 levels. They need 3, 4, 5 and 6 bits.
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

/// A message of one collective. Encoding takes `encode` seconds, the wire carries `bytes`, and decoding takes `decode`
/// seconds.
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

// The messages are coded at 2 s and 4 s. The first is on the cable from 2 s to 18 s, the second until 34 s. The first
// is decoded from 18 s to 23 s. Then the rank waits 11 s for the second.
TEST(RoundTime, CodesOneMessageWhileAnotherTravels) {
  const std::vector<PlannedMessage> two(2, message(2, 30, 5));
  expect_times(round_time(two, {.hop = 1, .byte = 0.5}), {4, 14 + 11, 10});
}

TEST(RoundTime, WaitsForNoCableThatIsFasterThanItsCodecs) {
  const std::vector<PlannedMessage> three(3, message(2, 1, 5));
  expect_times(round_time(three, {.byte = 0.5}), {6, 0, 15});
}

// A rank needs the scalers before it can code a message. The scalers of the second message go with the first message.
TEST(RoundTime, SendsWhatAMessageNeedsFirst) {
  PlannedMessage shared = message(2, 30, 5);
  shared.plan.phases.insert(shared.plan.phases.begin(), {.wire = {.busiest = 4, .hops = 2, .sent = 1}});
  shared.plan.under_way = 1;
  // 4 s of scalers, 2 s of coding, 16 s on the cable. The second message takes the same again after the cable is free,
  // and then its own 16 s.
  const std::vector<PlannedMessage> two(2, shared);
  expect_times(round_time(two, {.hop = 1, .byte = 0.5}), {4, 4 + 20 + 11, 10});
}

// The rank computes for 40 s. The message is ready at 10 s, coded at 12 s, on the cable until 28 s and decoded at 33 s,
// so the step ends with the computation, but for the work of coding: 40 s and 7 s on one core, or on two.
TEST(OverlappedRoundTime, HidesTheCableBehindTheComputation) {
  const std::vector<PlannedMessage> one(1, message(2, 30, 5));
  const LinkCost link = {.hop = 1, .byte = 0.5};
  EXPECT_DOUBLE_EQ(overlapped_round_time(one, link, {.compute = 40, .ready = {10}}).total(), 7);
  // On two cores, the one thread takes 14 s to code: 10 + 4 + 16 + 10 = 40 s.
  EXPECT_DOUBLE_EQ(overlapped_round_time(one, link, {.compute = 40, .ready = {10}, .threads = 2}).total(), 7);
}

// The second message is ready at 38 s, coded at 40 s, there at 56 s and decoded at 61 s: 21 s after the computation.
TEST(OverlappedRoundTime, WaitsForTheLastMessage) {
  const std::vector<PlannedMessage> two(2, message(2, 30, 5));
  const ExchangeTimes found = overlapped_round_time(two, {.hop = 1, .byte = 0.5}, {.compute = 40, .ready = {10, 38}});
  expect_times(found, {0, 21, 0});
  EXPECT_THROW(overlapped_round_time(two, {}, {.compute = 40, .ready = {10}}), Error);
}

}  // namespace
}  // namespace tern::test
