#include "tern/dist/cost/gpu_cluster.h"

#include <algorithm>
#include <cmath>

#include "tern/kernels/codec.h"

namespace tern {
namespace {

double workers(const GpuCluster& cluster) { return static_cast<double>(cluster.machines * cluster.gpus); }

/// Returns Σ seconds(k) over log2 `parties` rounds that sum pair by pair. k is the number of workers in each sum at the
/// start of a round. If `parties` is not a power of two, the last round counts in part. `summed` is the first k; on
/// return it is the k after the last round.
template <class Seconds>
double rounds(int64_t parties, int64_t& summed, const Seconds& seconds) {
  double total = 0;
  for (double left = std::log2(static_cast<double>(parties)); left > 0; left -= 1, summed *= 2)
    total += std::min(left, 1.0) * seconds(summed);
  return total;
}

double computation_seconds(const GpuCluster& cluster, const ProfiledStep& step) {
  return step.seconds - step.gradient_bytes / cluster.cpu_bandwidth;
}

}  // namespace

BytesOfSum constant_bytes(double bytes) {
  return [bytes](int64_t) { return bytes; };
}

BytesOfSum ternary_sum_bytes(double elements) {
  return [elements](int64_t summed) { return elements * kernels::code_bits(summed) / 8; };
}

double communication_seconds(const GpuCluster& cluster, const BytesOfSum& bytes) {
  int64_t summed = 1;
  const double within = rounds(cluster.gpus, summed, [&](int64_t k) { return bytes(k) / cluster.gpu_bandwidth; });
  const double to_cpu = bytes(summed) / cluster.cpu_bandwidth;
  return within + to_cpu + rounds(cluster.machines, summed, [&](int64_t k) {
           return cluster.network_latency + bytes(k) / cluster.network_bandwidth;
         });
}

double weak_scaling_seconds(const GpuCluster& cluster, const ProfiledStep& step, const BytesOfSum& bytes) {
  return computation_seconds(cluster, step) + communication_seconds(cluster, bytes);
}

double weak_scaling_throughput(const GpuCluster& cluster, const ProfiledStep& step, const BytesOfSum& bytes) {
  return workers(cluster) * step.images / weak_scaling_seconds(cluster, step, bytes);
}

}  // namespace tern
