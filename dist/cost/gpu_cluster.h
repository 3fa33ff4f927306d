#pragma once

#include <cstdint>
#include <functional>

namespace tern {

// TernGrad's performance model (Wen et al., 2017, Appendix B, equations 27 to 30): N = i·j GPUs sum their gradients
// pair by pair, in log2 N rounds. Bandwidths are in bytes per second.

/// A cluster of j machines with i GPUs each.
struct GpuCluster {
  int64_t machines = 1;          ///< j
  int64_t gpus = 1;              ///< i, per machine
  double gpu_bandwidth = 0;      ///< C_gwd, between two GPUs of a machine
  double cpu_bandwidth = 0;      ///< C_cwd, between a GPU and its CPU
  double network_bandwidth = 0;  ///< C_nwd
  double network_latency = 0;    ///< C_ncost, seconds
};

/// The profile of a training step of one GPU alone.
struct ProfiledStep {
  double seconds = 0;         ///< T(1, 1, K, |g|), with |g|/C_cwd for the gradient's way to the CPU
  double images = 0;          ///< K
  double gradient_bytes = 0;  ///< |g|
};

/// Bytes that the sum of the gradients of `workers` workers takes on the wire. The paper uses one size for all rounds.
using BytesOfSum = std::function<double(int64_t workers)>;
BytesOfSum constant_bytes(double bytes);
/// The size of summed ternary gradients with one scaler. Each element of a sum of k workers is a whole number within
/// ±k, of ⌈log2(2k + 1)⌉ bits.
BytesOfSum ternary_sum_bytes(double elements);

/// T_comm = |g|/C_gwd · log2 i + |g|/C_cwd + (C_ncost + |g|/C_nwd) · log2 j, in seconds. `bytes` gives |g| for each
/// round.
double communication_seconds(const GpuCluster& cluster, const BytesOfSum& bytes);

/// Equation 29, seconds per step: each GPU has K images of its own.
double weak_scaling_seconds(const GpuCluster& cluster, const ProfiledStep& step, const BytesOfSum& bytes);
/// Equation 30, images per second.
double weak_scaling_throughput(const GpuCluster& cluster, const ProfiledStep& step, const BytesOfSum& bytes);

}  // namespace tern
