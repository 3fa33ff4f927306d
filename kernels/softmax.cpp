#include "tern/kernels/softmax.h"

#include "tern/core/error.h"

namespace tern::kernels {

void check_label(int64_t label, int64_t row, int64_t classes) {
  check(label >= 0 && label < classes, "cross_entropy: row ", row, " has label ", label, ", expected 0 to ",
        classes - 1, " for ", classes, " classes");
}

}  // namespace tern::kernels
