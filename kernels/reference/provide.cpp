#include "tern/kernels/provide.h"

namespace tern {

void provide_reference_kernels() {
  reference::provide_attention();
  reference::provide_block_dct();
  reference::provide_codec();
  reference::provide_convolution();
  reference::provide_ctc();
  reference::provide_dropout();
  reference::provide_elementwise();
  reference::provide_embedding();
  reference::provide_entropy();
  reference::provide_feedback();
  reference::provide_hadamard();
  reference::provide_layer_norm();
  reference::provide_layout();
  reference::provide_loss();
  reference::provide_matmul();
  reference::provide_normalization();
  reference::provide_onebit();
  reference::provide_orthonormal();
  reference::provide_pooling();
  reference::provide_randk();
  reference::provide_recurrent();
  reference::provide_reduction();
  reference::provide_short_float();
  reference::provide_softmax_chunk();
  reference::provide_topk();
  reference::provide_topk_block();
  reference::provide_trits();
  reference::provide_update();
}

}  // namespace tern
