#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "tern/core/tensor.h"

namespace tern::cpu::onednn {

/// The processor, as oneDNN sees it.
dnnl::engine& engine();
/// Runs a primitive in the calling thread's stream and waits for it.
void execute(const dnnl::primitive& primitive, const std::unordered_map<int, dnnl::memory>& arguments);

/// f32 or bf16
dnnl::memory::data_type data_type(DType dtype);
/// A channels-last or row-major image batch.
dnnl::memory::desc image_desc(const Tensor& image);
/// An f32 vector.
dnnl::memory::desc vector_desc(const Tensor& vector);
/// The elements of `tensor`, described otherwise; the tensor outlives it.
dnnl::memory memory(const Tensor& tensor, const dnnl::memory::desc& desc);
/// Uninitialised bytes for `desc`.
Tensor scratch(const dnnl::memory::desc& desc);

/// Whether oneDNN computes bf16 products with this processor's own instructions (AVX512-BF16 or AMX).
bool has_bf16();

/// A primitive's descriptor with scratch memory given by its caller, from the arguments that describe the operation
/// and, for a gradient, the forward descriptor as hint. Empty where oneDNN has no such primitive. oneDNN 2 puts the
/// arguments in a `desc`, oneDNN 3 takes them directly.
template <class Primitive, class Describe, class... Hint>
typename Primitive::primitive_desc primitive_desc(dnnl::primitive_attr attributes, Describe describe,
                                                  const Hint&... hint) {
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return describe([&](const auto&... arguments) -> typename Primitive::primitive_desc {
    if constexpr (requires { typename Primitive::desc; })
      return {typename Primitive::desc(arguments...), attributes, engine(), hint..., true};
    else
      return {engine(), arguments..., hint..., attributes, true};
  });
}

}  // namespace tern::cpu::onednn
