#pragma once

// How operations find their implementations: each family of each target has one file, which ends with a function that
// provides the family's kernels. The target's provide.cpp calls these functions.

namespace tern::reference {
void provide_attention();
void provide_block_dct();
void provide_codec();
void provide_convolution();
void provide_ctc();
void provide_dropout();
void provide_elementwise();
void provide_embedding();
void provide_entropy();
void provide_feedback();
void provide_hadamard();
void provide_layer_norm();
void provide_layout();
void provide_loss();
void provide_matmul();
void provide_normalization();
void provide_onebit();
void provide_orthonormal();
void provide_pooling();
void provide_randk();
void provide_recurrent();
void provide_reduction();
void provide_short_float();
void provide_softmax_chunk();
void provide_topk();
void provide_topk_block();
void provide_trits();
void provide_update();
}  // namespace tern::reference

namespace tern::cpu {
void provide_attention();
void provide_block_dct();
void provide_codec();
void provide_convolution();
void provide_ctc();
void provide_dropout();
void provide_elementwise();
void provide_embedding();
void provide_entropy();
void provide_feedback();
void provide_hadamard();
void provide_layer_norm();
void provide_layout();
void provide_loss();
void provide_matmul();
void provide_normalization();
void provide_onebit();
void provide_orthonormal();
void provide_pooling();
void provide_randk();
void provide_recurrent();
void provide_reduction();
void provide_short_float();
void provide_softmax_chunk();
void provide_topk();
void provide_topk_block();
void provide_trits();
void provide_update();
}  // namespace tern::cpu

namespace tern::cuda {
void provide_attention();
void provide_block_dct();
void provide_codec();
void provide_convolution();
void provide_ctc();
void provide_dropout();
void provide_elias_pack();
void provide_elias_unpack();
void provide_elementwise();
void provide_embedding();
void provide_entropy_pack();
void provide_entropy_unpack();
void provide_feedback();
void provide_hadamard();
void provide_layer_norm();
void provide_layout();
void provide_loss();
void provide_matmul();
void provide_normalization();
void provide_onebit();
void provide_orthonormal();
void provide_pooling();
void provide_randk();
void provide_recurrent();
void provide_reduction();
void provide_short_float();
void provide_softmax_chunk();
void provide_topk();
void provide_topk_block();
void provide_trits();
void provide_update();
}  // namespace tern::cuda

namespace tern {

/// Provide the kernels of the targets that the build chose. Each is called once, on the first use of any kernel.
void provide_reference_kernels();
void provide_cpu_kernels();
void provide_cuda_kernels();

}  // namespace tern
