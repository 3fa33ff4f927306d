#pragma once

#include <functional>

#include "tern/core/cuda/runtime.h"

namespace tern::cuda {

/// Work that was put into a stream, as a CUDA graph, which runs it again with one call. Owns the graph; the memory that
/// the work uses must live as long. Used by one thread.
class CapturedGraph {
 public:
  /// Captures what `issue` puts into `stream`, and runs none of it. Throws what `issue` throws, and Error "record: ..."
  /// if the work cannot be captured.
  CapturedGraph(cudaStream_t stream, const std::function<void()>& issue) {
    // Relaxed mode: the work may need a new block from the system, which other modes forbid.
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "record");
    cudaGraph_t captured = nullptr;
    try {
      issue();
    } catch (...) {
      cudaStreamEndCapture(stream, &captured);
      cudaGetLastError();
      if (captured != nullptr) cudaGraphDestroy(captured);
      throw;
    }
    check_cuda(cudaStreamEndCapture(stream, &captured), "record");
    cudaError_t status = cudaGraphGetNodes(captured, nullptr, &launches_);
    if (status == cudaSuccess) status = cudaGraphInstantiate(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    check_cuda(status, "record");
  }
  ~CapturedGraph() { cudaGraphExecDestroy(graph_); }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  void replay(cudaStream_t stream) const { check_cuda(cudaGraphLaunch(graph_, stream), "replay"); }
  /// The number of launches, copies and fills.
  size_t launches() const { return launches_; }

 private:
  size_t launches_ = 0;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace tern::cuda
