#include "tern/kernels/provide.h"

namespace tern {

void provide_cpu_kernels() {
  cpu::provide_attention();
  cpu::provide_block_dct();
  cpu::provide_codec();
  cpu::provide_convolution();
  cpu::provide_ctc();
  cpu::provide_dropout();
  cpu::provide_elementwise();
  cpu::provide_embedding();
  cpu::provide_entropy();
  cpu::provide_feedback();
  cpu::provide_hadamard();
  cpu::provide_layer_norm();
  cpu::provide_layout();
  cpu::provide_loss();
  cpu::provide_matmul();
  cpu::provide_normalization();
  cpu::provide_onebit();
  cpu::provide_orthonormal();
  cpu::provide_pooling();
  cpu::provide_randk();
  cpu::provide_recurrent();
  cpu::provide_reduction();
  cpu::provide_short_float();
  cpu::provide_softmax_chunk();
  cpu::provide_topk();
  cpu::provide_topk_block();
  cpu::provide_trits();
  cpu::provide_update();
}

}  // namespace tern
