#include "tern/kernels/transform_images.h"

#include "tern/core/error.h"

namespace tern::kernels {

void transform_images(const Tensor& pixels, const Tensor&, const Tensor&, const ImageMap&, Tensor&) {
  fail({"transform_images: device ", pixels.device(), ", and this build has no CUDA"});
}

}  // namespace tern::kernels
