#pragma once

namespace tern {

/// Each device folder that the build chose lists its functions in one of these; called once, on first use.
void provide_reference_kernels();
void provide_cpu_kernels();
void provide_cuda_kernels();

}  // namespace tern
