#include "tern/kernels/cpu/onednn.h"

#include "tern/core/error.h"

namespace tern::cpu::onednn {

dnnl::engine& engine() {
  static auto& processor = *new dnnl::engine(dnnl::engine::kind::cpu, 0);  // never destroyed: primitives refer to it
  return processor;
}

void execute(const dnnl::primitive& primitive, const std::unordered_map<int, dnnl::memory>& arguments) {
  thread_local dnnl::stream stream(engine());
  try {
    primitive.execute(stream, arguments);
    stream.wait();
  } catch (const dnnl::error& error) {
    fail({"oneDNN: ", error.message, " (status ", static_cast<int>(error.status), ")"});
  }
}

dnnl::memory::data_type data_type(DType dtype) {
  check(dtype == DType::f32 || dtype == DType::bf16, "oneDNN: elements are ", dtype, ", expected f32 or bf16");
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc image_desc(const Tensor& image) {
  const Shape& shape = image.shape();
  const auto tag =
      image.format() == MemoryFormat::channels_last ? dnnl::memory::format_tag::nhwc : dnnl::memory::format_tag::nchw;
  return {dnnl::memory::dims(shape.begin(), shape.end()), data_type(image.dtype()), tag};
}

dnnl::memory::desc vector_desc(const Tensor& vector) {
  return {{vector.numel()}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a};
}

dnnl::memory memory(const Tensor& tensor, const dnnl::memory::desc& desc) {
  return {desc, engine(), tensor.raw_data()};
}

Tensor scratch(const dnnl::memory::desc& desc) {
  return Tensor::empty({static_cast<int64_t>(desc.get_size())}, {.dtype = DType::u8});
}

bool has_bf16() {
  // Each instruction set's number has the bits of those it contains.
  const auto contains = [](dnnl::cpu_isa set, dnnl::cpu_isa part) {
    return (static_cast<unsigned>(set) & static_cast<unsigned>(part)) == static_cast<unsigned>(part);
  };
  static const bool has = contains(dnnl::get_effective_cpu_isa(), dnnl::cpu_isa::avx512_core_bf16);
  return has;
}

}  // namespace tern::cpu::onednn
