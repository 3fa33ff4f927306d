#include "tern/apps/trainer/resident_set.h"

namespace tern {

bool ResidentSet::takes(const Dataset& data, Device device) {
  constexpr int64_t kMostBytes = int64_t{512} << 20;
  return device.type == DeviceType::cuda && data.spec().channels <= kernels::kMostImageChannels &&
         data.size() * data.spec().numel() <= kMostBytes;
}

ResidentSet::ResidentSet(const Dataset& data, const Transform& transform, Device device)
    : output_(transform.output(data.spec())),
      map_{.pad = transform.pad,
           .standardize = transform.standardize,
           .mean = transform.mean,
           .deviation = transform.deviation} {
  const ImageSpec spec = data.spec();
  const auto size = static_cast<size_t>(spec.numel());
  const Tensor pixels = Tensor::empty({data.size(), spec.channels, spec.height, spec.width},
                                      {.dtype = DType::u8, .format = MemoryFormat::channels_last});
  for (int64_t i = 0; i < data.size(); ++i)
    data.read(i, pixels.span<uint8_t>().subspan(static_cast<size_t>(i) * size, size));
  pixels_ = pixels.to(device);
}

Tensor ResidentSet::draws(const std::vector<Augmentation>& augmentations) {
  const Tensor draws = Tensor::empty({std::ssize(augmentations), kernels::kImageDraws}, {.dtype = DType::f64});
  double* to = draws.data<double>();
  for (const auto& [top, left, flip, brightness, contrast] : augmentations)
    for (const double draw : {double(top), double(left), double(flip), double(brightness), double(contrast)})
      *to++ = draw;
  return draws;
}

}  // namespace tern
