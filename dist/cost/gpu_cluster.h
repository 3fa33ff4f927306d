#pragma once

#include <cstdint>
#include <functional>

namespace tern {

// TernGrad's performance model (Wen et al., 2017, Appendix B, equations 27 to 30): N = i·j GPUs sum their gradients
// pair by pair, in log2 N rounds. Bandwidths in bytes a second.

/// j machines of i GPUs each.
struct GpuCluster {
  int64_t machines = 1;          ///< j
  int64_t gpus = 1;              ///< i, of each machine
  double gpu_bandwidth = 0;      ///< C_gwd, between two GPUs of a machine
  double cpu_bandwidth = 0;      ///< C_cwd, between a GPU and its CPU
  double network_bandwidth = 0;  ///< C_nwd
  double network_latency = 0;    ///< C_ncost, seconds
};

/// A training step of one GPU alone, as it was profiled.
struct ProfiledStep {
  double seconds = 0;         ///< T(1, 1, K, |g|), of which |g|/C_cwd takes the gradient to the CPU
  double images = 0;          ///< K
  double gradient_bytes = 0;  ///< |g|
};

/// Bytes of the sum of so many workers' gradients on its way. The paper has one size for all rounds.
using BytesOfSum = std::function<double(int64_t workers)>;
BytesOfSum constant_bytes(double bytes);
/// Ternary gradients with one scaler: a sum of k is a whole number within ±k, of ⌈log2(2k + 1)⌉ bits.
BytesOfSum ternary_sum_bytes(double elements);

/// T_comm = |g|/C_gwd · log2 i + |g|/C_cwd + (C_ncost + |g|/C_nwd) · log2 j, seconds.
double communication_seconds(const GpuCluster& cluster, const BytesOfSum& bytes);

/// Equation 27: all GPUs share the K images of one step.
double strong_scaling_seconds(const GpuCluster& cluster, const ProfiledStep& step, const BytesOfSum& bytes);
/// Equation 28, images a second.
double strong_scaling_throughput(const GpuCluster& cluster, const ProfiledStep& step, const BytesOfSum& bytes);
/// Equation 29: each GPU has K images of its own.
double weak_scaling_seconds(const GpuCluster& cluster, const ProfiledStep& step, const BytesOfSum& bytes);
/// Equation 30, images a second.
double weak_scaling_throughput(const GpuCluster& cluster, const ProfiledStep& step, const BytesOfSum& bytes);

}  // namespace tern
