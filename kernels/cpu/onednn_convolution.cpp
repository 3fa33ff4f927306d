#include "tern/kernels/cpu/onednn_convolution.h"

#include "tern/kernels/cpu/onednn.h"
#include "tern/kernels/cpu/onednn_cache.h"

namespace tern::cpu {
namespace {

using dnnl::memory;
using kernels::ConvGeometry;

/// The weights' shape as oneDNN has it: with groups, [groups, O/groups, C/groups, kh, kw].
memory::dims weight_dims(const Shape& w, int64_t groups) {
  if (groups == 1) return {w[0], w[1], w[2], w[3]};
  return {groups, w[0] / groups, w[1], w[2], w[3]};
}

/// f32 weights as tern keeps them.
memory::desc plain_weights(const Shape& w, int64_t groups) {
  return {weight_dims(w, groups), memory::data_type::f32,
          groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw};
}

/// One convolution, as oneDNN describes its operands.
struct Description {
  memory::desc x, w, y;
  memory::desc bias;  ///< zero where there is none
  memory::dims stride, dilation, padding;
};

Description describe(const Tensor& x, const Shape& w, const Tensor& y, bool bias, DType weight_dtype,
                     const ConvGeometry& geometry) {
  const auto& [stride, padding, dilation, groups] = geometry;
  return {.x = onednn::image_desc(x),
          .w = {weight_dims(w, groups), onednn::data_type(weight_dtype), memory::format_tag::any},
          .y = onednn::image_desc(y),
          .bias = bias ? memory::desc({w[0]}, memory::data_type::f32, memory::format_tag::a) : memory::desc(),
          .stride = {stride.h, stride.w},
          .dilation = {dilation.h - 1, dilation.w - 1},
          .padding = {padding.h, padding.w}};
}

dnnl::convolution_forward::primitive_desc forward_desc(const Description& d) {
  return onednn::primitive_desc<dnnl::convolution_forward>({}, [&](auto make) {
    return make(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, d.x, d.w, d.bias, d.y, d.stride,
                d.dilation, d.padding, d.padding);
  });
}

onednn::CacheKey key_of(onednn::Operation operation, const Tensor& x, const Shape& w, const Tensor& y,
                        const ConvGeometry& g, bool bias) {
  onednn::CacheKey key(operation, x.dtype());
  key.add(x.shape()).add(w).add(y.shape()).add({int64_t(x.format()), int64_t(y.format()), bias});
  key.add({g.stride.h, g.stride.w, g.padding.h, g.padding.w, g.dilation.h, g.dilation.w, g.groups});
  return key;
}

}  // namespace

bool onednn_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry& geometry, Tensor& y) {
  const auto entry = onednn::cached(
      key_of(onednn::Operation::forward, x, w.shape(), y, geometry, bias.defined()), [&]() -> onednn::Cached {
        const auto desc = forward_desc(describe(x, w.shape(), y, bias.defined(), x.dtype(), geometry));
        if (!desc) return {};
        const auto plain = plain_weights(w.shape(), geometry.groups);
        return {dnnl::convolution_forward(desc), desc.scratchpad_desc(), desc.weights_desc(), plain,
                dnnl::reorder({onednn::engine(), plain, onednn::engine(), desc.weights_desc()})};
      });
  if (!entry->primitive) return false;
  const Tensor packed = onednn::scratch(entry->weights), space = onednn::scratch(entry->scratchpad);
  const memory weights = onednn::memory(packed, entry->weights);
  onednn::execute(entry->reorder, {{DNNL_ARG_FROM, onednn::memory(w, entry->plain)}, {DNNL_ARG_TO, weights}});
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, onednn::memory(x, onednn::image_desc(x))},
                                            {DNNL_ARG_WEIGHTS, weights},
                                            {DNNL_ARG_DST, onednn::memory(y, onednn::image_desc(y))},
                                            {DNNL_ARG_SCRATCHPAD, onednn::memory(space, entry->scratchpad)}};
  if (bias.defined()) arguments.emplace(DNNL_ARG_BIAS, onednn::memory(bias, onednn::vector_desc(bias)));
  onednn::execute(entry->primitive, arguments);
  return true;
}

bool onednn_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry& geometry, Tensor& dx) {
  const auto entry = onednn::cached(
      key_of(onednn::Operation::backward_data, dx, w.shape(), dy, geometry, false), [&]() -> onednn::Cached {
        const Description d = describe(dx, w.shape(), dy, false, dy.dtype(), geometry);
        const auto hint = forward_desc(d);
        if (!hint) return {};
        const auto desc = onednn::primitive_desc<dnnl::convolution_backward_data>(
            {},
            [&](auto make) {
              return make(dnnl::algorithm::convolution_direct, d.x, d.w, d.y, d.stride, d.dilation, d.padding,
                          d.padding);
            },
            hint);
        if (!desc) return {};
        const auto plain = plain_weights(w.shape(), geometry.groups);
        return {dnnl::convolution_backward_data(desc), desc.scratchpad_desc(), desc.weights_desc(), plain,
                dnnl::reorder({onednn::engine(), plain, onednn::engine(), desc.weights_desc()})};
      });
  if (!entry->primitive) return false;
  const Tensor packed = onednn::scratch(entry->weights), space = onednn::scratch(entry->scratchpad);
  const memory weights = onednn::memory(packed, entry->weights);
  onednn::execute(entry->reorder, {{DNNL_ARG_FROM, onednn::memory(w, entry->plain)}, {DNNL_ARG_TO, weights}});
  onednn::execute(entry->primitive, {{DNNL_ARG_DIFF_DST, onednn::memory(dy, onednn::image_desc(dy))},
                                     {DNNL_ARG_WEIGHTS, weights},
                                     {DNNL_ARG_DIFF_SRC, onednn::memory(dx, onednn::image_desc(dx))},
                                     {DNNL_ARG_SCRATCHPAD, onednn::memory(space, entry->scratchpad)}});
  return true;
}

bool onednn_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry& geometry, Tensor& dw, Tensor& db) {
  const auto entry = onednn::cached(
      key_of(onednn::Operation::backward_weights, x, dw.shape(), dy, geometry, db.defined()), [&]() -> onednn::Cached {
        const auto hint = forward_desc(describe(x, dw.shape(), dy, db.defined(), x.dtype(), geometry));
        if (!hint) return {};
        const Description d = describe(x, dw.shape(), dy, db.defined(), DType::f32, geometry);
        const auto desc = onednn::primitive_desc<dnnl::convolution_backward_weights>(
            {},
            [&](auto make) {
              return make(dnnl::algorithm::convolution_direct, d.x, d.w, d.bias, d.y, d.stride, d.dilation, d.padding,
                          d.padding);
            },
            hint);
        if (!desc) return {};
        const auto plain = plain_weights(dw.shape(), geometry.groups);
        return {dnnl::convolution_backward_weights(desc), desc.scratchpad_desc(), desc.diff_weights_desc(), plain,
                dnnl::reorder({onednn::engine(), desc.diff_weights_desc(), onednn::engine(), plain})};
      });
  if (!entry->primitive) return false;
  const Tensor packed = onednn::scratch(entry->weights), space = onednn::scratch(entry->scratchpad);
  const memory weights = onednn::memory(packed, entry->weights);
  std::unordered_map<int, memory> arguments{{DNNL_ARG_DIFF_DST, onednn::memory(dy, onednn::image_desc(dy))},
                                            {DNNL_ARG_SRC, onednn::memory(x, onednn::image_desc(x))},
                                            {DNNL_ARG_DIFF_WEIGHTS, weights},
                                            {DNNL_ARG_SCRATCHPAD, onednn::memory(space, entry->scratchpad)}};
  if (db.defined()) arguments.emplace(DNNL_ARG_DIFF_BIAS, onednn::memory(db, onednn::vector_desc(db)));
  onednn::execute(entry->primitive, arguments);
  onednn::execute(entry->reorder, {{DNNL_ARG_FROM, weights}, {DNNL_ARG_TO, onednn::memory(dw, entry->plain)}});
  return true;
}

}  // namespace tern::cpu
