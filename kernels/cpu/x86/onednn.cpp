#include <oneapi/dnnl/dnnl.hpp>

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/core/tensor.h"
#include "tern/kernels/cpu/convolution.h"
#include "tern/kernels/libraries.h"

namespace tern {
namespace cpu {
namespace {

using dnnl::memory;

/// The processor as a oneDNN engine.
dnnl::engine& engine() {
  static auto& processor = *new dnnl::engine(dnnl::engine::kind::cpu, 0);  // never destroyed: primitives refer to it
  return processor;
}

/// Runs a primitive in the calling thread's stream and waits for it. Throws Error if oneDNN fails.
void execute(const dnnl::primitive& primitive, const std::unordered_map<int, memory>& arguments) {
  thread_local dnnl::stream stream(engine());
  try {
    primitive.execute(stream, arguments);
    stream.wait();
  } catch (const dnnl::error& error) {
    fail({"oneDNN: ", error.message, " (status ", static_cast<int>(error.status), ")"});
  }
}

/// The oneDNN type of `dtype`. Throws unless it is f32 or bf16.
memory::data_type data_type(DType dtype) {
  check(dtype == DType::f32 || dtype == DType::bf16, "oneDNN: elements are ", dtype, ", expected f32 or bf16");
  return dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

/// Describes a channels-last or row-major batch of images.
memory::desc image_desc(const Tensor& image) {
  const Shape& shape = image.shape();
  const auto tag = image.format() == MemoryFormat::channels_last ? memory::format_tag::nhwc : memory::format_tag::nchw;
  return {memory::dims(shape.begin(), shape.end()), data_type(image.dtype()), tag};
}

/// Describes an f32 vector.
memory::desc vector_desc(const Tensor& vector) {
  return {{vector.numel()}, memory::data_type::f32, memory::format_tag::a};
}

/// The elements of `tensor` with the description `desc`. The tensor must outlive the result.
memory memory_of(const Tensor& tensor, const memory::desc& desc) { return {desc, engine(), tensor.raw_data()}; }

/// Uninitialised bytes for `desc`.
Tensor scratch(const memory::desc& desc) {
  return Tensor::empty({static_cast<int64_t>(desc.get_size())}, {.dtype = DType::u8});
}

/// A primitive's descriptor, with scratch memory that the caller gives. `describe` passes the arguments that describe
/// the operation; a gradient also needs the forward descriptor as `hint`. Empty if oneDNN has no such primitive. oneDNN
/// 2 puts the arguments in a `desc`, oneDNN 3 takes them directly.
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

enum class Operation : uint8_t { forward, backward_data, backward_weights };

/// Everything that a primitive depends on: operation, dtype, number of threads, shapes and settings.
class CacheKey {
 public:
  CacheKey(Operation operation, DType dtype)
      : values_{static_cast<int64_t>(operation), static_cast<int64_t>(dtype), thread_count()} {}
  CacheKey& add(std::initializer_list<int64_t> values) {
    values_.insert(values_.end(), values);
    return *this;
  }
  CacheKey& add(const Shape& shape) {
    values_.push_back(shape.rank());
    values_.insert(values_.end(), shape.begin(), shape.end());
    return *this;
  }
  friend auto operator<=>(const CacheKey&, const CacheKey&) = default;

 private:
  std::vector<int64_t> values_;
};

/// A convolution's primitive and the layout of its weights; empty if oneDNN has no primitive.
struct Cached {
  dnnl::primitive primitive;
  dnnl::memory::desc scratchpad;
  dnnl::memory::desc weights, plain;  ///< in the primitive's own layout, and in tern's
  dnnl::primitive reorder;            ///< converts between the two
};

/// Returns what `make` returns for this key; calls it only if the cache has no entry. Thread-safe. The cache has a
/// bounded size. Throws Error if oneDNN fails.
std::shared_ptr<const Cached> cached(const CacheKey& key, const std::function<Cached()>& make) {
  constexpr size_t kMaxEntries = 1024;  // enough for several networks; if it is reached, the cache is cleared
  static std::mutex mutex;
  static auto& entries = *new std::map<CacheKey, std::shared_ptr<const Cached>>;  // outlives every static tensor
  std::lock_guard lock(mutex);
  if (const auto found = entries.find(key); found != entries.end()) return found->second;
  if (entries.size() >= kMaxEntries) entries.clear();
  try {
    return entries.emplace(key, std::make_shared<const Cached>(make())).first->second;
  } catch (const dnnl::error& error) {
    fail({"oneDNN: ", error.message, " (status ", static_cast<int>(error.status), ")"});
  }
}

/// The shape of the weights for oneDNN: with groups, [groups, O/groups, C/groups, kh, kw].
memory::dims weight_dims(const Shape& w, int64_t groups) {
  if (groups == 1) return {w[0], w[1], w[2], w[3]};
  return {groups, w[0] / groups, w[1], w[2], w[3]};
}

/// Describes f32 weights in tern's layout.
memory::desc plain_weights(const Shape& w, int64_t groups) {
  return {weight_dims(w, groups), memory::data_type::f32,
          groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw};
}

/// One convolution with its operands in oneDNN's description.
struct Description {
  memory::desc x, w, y;
  memory::desc bias;  ///< zero if there is none
  memory::dims stride, dilation, padding;
};

Description describe(const Tensor& x, const Shape& w, const Tensor& y, bool bias, DType weight_dtype,
                     const ConvGeometry& geometry) {
  const auto& [stride, padding, dilation, groups] = geometry;
  return {.x = image_desc(x),
          .w = {weight_dims(w, groups), data_type(weight_dtype), memory::format_tag::any},
          .y = image_desc(y),
          .bias = bias ? memory::desc({w[0]}, memory::data_type::f32, memory::format_tag::a) : memory::desc(),
          .stride = {stride.h, stride.w},
          .dilation = {dilation.h - 1, dilation.w - 1},
          .padding = {padding.h, padding.w}};
}

/// Empty if oneDNN has no primitive. oneDNN 2.6 gives wrong bf16 results and gradients for some dilated windows, so
/// those have none either.
dnnl::convolution_forward::primitive_desc forward_desc(const Description& d) {
  if (d.dilation != memory::dims{0, 0}) return {};
  return primitive_desc<dnnl::convolution_forward>({}, [&](auto make) {
    return make(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, d.x, d.w, d.bias, d.y, d.stride,
                d.dilation, d.padding, d.padding);
  });
}

CacheKey key_of(Operation operation, const Tensor& x, const Shape& w, const Tensor& y, const ConvGeometry& g,
                bool bias) {
  CacheKey key(operation, x.dtype());
  key.add(x.shape()).add(w).add(y.shape()).add({int64_t(x.format()), int64_t(y.format()), bias});
  key.add({g.stride.h, g.stride.w, g.padding.h, g.padding.w, g.dilation.h, g.dilation.w, g.groups});
  return key;
}

}  // namespace
}  // namespace cpu

std::vector<std::pair<std::string, std::string>> kernels::cpu_libraries() {
  const dnnl_version_t* onednn = dnnl_version();
  return {{"onednn",
           std::to_string(onednn->major) + '.' + std::to_string(onednn->minor) + '.' + std::to_string(onednn->patch)}};
}

bool kernels::has_bf16_products() { return cpu::onednn_has_bf16(); }

namespace cpu {

bool onednn_has_bf16() {
  // Each instruction set's number includes the bits of the sets that it contains.
  const auto contains = [](dnnl::cpu_isa set, dnnl::cpu_isa part) {
    return (static_cast<unsigned>(set) & static_cast<unsigned>(part)) == static_cast<unsigned>(part);
  };
  static const bool has = contains(dnnl::get_effective_cpu_isa(), dnnl::cpu_isa::avx512_core_bf16);
  return has;
}

bool onednn_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry& geometry, Tensor& y) {
  const auto entry = cached(key_of(Operation::forward, x, w.shape(), y, geometry, bias.defined()), [&]() -> Cached {
    const auto desc = forward_desc(describe(x, w.shape(), y, bias.defined(), x.dtype(), geometry));
    if (!desc) return {};
    const auto plain = plain_weights(w.shape(), geometry.groups);
    return {dnnl::convolution_forward(desc), desc.scratchpad_desc(), desc.weights_desc(), plain,
            dnnl::reorder({engine(), plain, engine(), desc.weights_desc()})};
  });
  if (!entry->primitive) return false;
  const Tensor packed = scratch(entry->weights), space = scratch(entry->scratchpad);
  const memory weights = memory_of(packed, entry->weights);
  execute(entry->reorder, {{DNNL_ARG_FROM, memory_of(w, entry->plain)}, {DNNL_ARG_TO, weights}});
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, memory_of(x, image_desc(x))},
                                            {DNNL_ARG_WEIGHTS, weights},
                                            {DNNL_ARG_DST, memory_of(y, image_desc(y))},
                                            {DNNL_ARG_SCRATCHPAD, memory_of(space, entry->scratchpad)}};
  if (bias.defined()) arguments.emplace(DNNL_ARG_BIAS, memory_of(bias, vector_desc(bias)));
  execute(entry->primitive, arguments);
  return true;
}

bool onednn_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry& geometry, Tensor& dx) {
  // oneDNN 2.6 computes these wrongly for some sizes of images.
  if (w.size(2) * w.size(3) == 1 && w.size(0) / geometry.groups % 2 == 1) return false;
  const auto entry = cached(key_of(Operation::backward_data, dx, w.shape(), dy, geometry, false), [&]() -> Cached {
    const Description d = describe(dx, w.shape(), dy, false, dy.dtype(), geometry);
    const auto hint = forward_desc(d);
    if (!hint) return {};
    const auto desc = primitive_desc<dnnl::convolution_backward_data>(
        {},
        [&](auto make) {
          return make(dnnl::algorithm::convolution_direct, d.x, d.w, d.y, d.stride, d.dilation, d.padding, d.padding);
        },
        hint);
    if (!desc) return {};
    const auto plain = plain_weights(w.shape(), geometry.groups);
    return {dnnl::convolution_backward_data(desc), desc.scratchpad_desc(), desc.weights_desc(), plain,
            dnnl::reorder({engine(), plain, engine(), desc.weights_desc()})};
  });
  if (!entry->primitive) return false;
  const Tensor packed = scratch(entry->weights), space = scratch(entry->scratchpad);
  const memory weights = memory_of(packed, entry->weights);
  execute(entry->reorder, {{DNNL_ARG_FROM, memory_of(w, entry->plain)}, {DNNL_ARG_TO, weights}});
  execute(entry->primitive, {{DNNL_ARG_DIFF_DST, memory_of(dy, image_desc(dy))},
                             {DNNL_ARG_WEIGHTS, weights},
                             {DNNL_ARG_DIFF_SRC, memory_of(dx, image_desc(dx))},
                             {DNNL_ARG_SCRATCHPAD, memory_of(space, entry->scratchpad)}});
  return true;
}

bool onednn_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry& geometry, Tensor& dw, Tensor& db) {
  // oneDNN 2.6 writes beyond its memory for some of the first, and computes some of the others wrongly.
  const bool strided_points = dw.size(2) * dw.size(3) == 1 && geometry.stride != kernels::Extent2(1);
  const bool narrow = x.size(2) < geometry.stride.h || x.size(3) < geometry.stride.w;
  if (strided_points || narrow) return false;
  const auto entry =
      cached(key_of(Operation::backward_weights, x, dw.shape(), dy, geometry, db.defined()), [&]() -> Cached {
        const auto hint = forward_desc(describe(x, dw.shape(), dy, db.defined(), x.dtype(), geometry));
        if (!hint) return {};
        const Description d = describe(x, dw.shape(), dy, db.defined(), DType::f32, geometry);
        const auto desc = primitive_desc<dnnl::convolution_backward_weights>(
            {},
            [&](auto make) {
              return make(dnnl::algorithm::convolution_direct, d.x, d.w, d.bias, d.y, d.stride, d.dilation, d.padding,
                          d.padding);
            },
            hint);
        if (!desc) return {};
        const auto plain = plain_weights(dw.shape(), geometry.groups);
        return {dnnl::convolution_backward_weights(desc), desc.scratchpad_desc(), desc.diff_weights_desc(), plain,
                dnnl::reorder({engine(), desc.diff_weights_desc(), engine(), plain})};
      });
  if (!entry->primitive) return false;
  const Tensor packed = scratch(entry->weights), space = scratch(entry->scratchpad);
  const memory weights = memory_of(packed, entry->weights);
  std::unordered_map<int, memory> arguments{{DNNL_ARG_DIFF_DST, memory_of(dy, image_desc(dy))},
                                            {DNNL_ARG_SRC, memory_of(x, image_desc(x))},
                                            {DNNL_ARG_DIFF_WEIGHTS, weights},
                                            {DNNL_ARG_SCRATCHPAD, memory_of(space, entry->scratchpad)}};
  if (db.defined()) arguments.emplace(DNNL_ARG_DIFF_BIAS, memory_of(db, vector_desc(db)));
  execute(entry->primitive, arguments);
  execute(entry->reorder, {{DNNL_ARG_FROM, weights}, {DNNL_ARG_TO, memory_of(dw, entry->plain)}});
  return true;
}

}  // namespace cpu
}  // namespace tern
