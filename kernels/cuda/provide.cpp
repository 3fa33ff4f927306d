#include "tern/kernels/provide.h"

namespace tern {

void provide_cuda_kernels() {
  cuda::provide_attention();
  cuda::provide_block_dct();
  cuda::provide_codec();
  cuda::provide_convolution();
  cuda::provide_ctc();
  cuda::provide_dropout();
  cuda::provide_elias_pack();
  cuda::provide_elias_unpack();
  cuda::provide_elementwise();
  cuda::provide_embedding();
  cuda::provide_entropy_pack();
  cuda::provide_entropy_unpack();
  cuda::provide_feedback();
  cuda::provide_hadamard();
  cuda::provide_layer_norm();
  cuda::provide_layout();
  cuda::provide_loss();
  cuda::provide_matmul();
  cuda::provide_normalization();
  cuda::provide_onebit();
  cuda::provide_orthonormal();
  cuda::provide_pooling();
  cuda::provide_randk();
  cuda::provide_recurrent();
  cuda::provide_reduction();
  cuda::provide_short_float();
  cuda::provide_softmax_chunk();
  cuda::provide_topk();
  cuda::provide_topk_block();
  cuda::provide_trits();
  cuda::provide_update();
}

}  // namespace tern
