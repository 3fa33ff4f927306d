#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "tern/core/dtype.h"

// Descriptors keep what they are given. A plan's run reads the convolution from the descriptors and computes it with
// plain loops. It refuses what cuDNN refuses: an unknown engine, a knob that is set twice, extents that do not fit,
// misaligned arrays, and a bias of another type than y.

namespace {

using emulation::DnnEngine;
using Fate = DnnEngine::Fate;

struct Content;
using Link = std::shared_ptr<const Content>;

struct Attribute {
  std::vector<std::byte> bytes;  // of plain values
  std::vector<Link> links;       // to descriptors
};

/// The content of a descriptor. Other descriptors refer to it, so it may outlive its own descriptor.
struct Content {
  bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name) const {
    const auto& bytes = attributes.at(name).bytes;
    std::vector<T> found(bytes.size() / sizeof(T));
    std::memcpy(found.data(), bytes.data(), bytes.size());
    return found;
  }
  template <class T>
  T value(cudnnBackendAttributeName_t name) const {
    return values<T>(name).at(0);
  }
  const Link& link(cudnnBackendAttributeName_t name) const { return attributes.at(name).links.at(0); }
  template <class T>
  void put(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    attributes[name] = {{bytes.begin(), bytes.end()}, {}};
  }

  cudnnBackendDescriptorType_t type;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes = {};
};

/// One array of a convolution.
struct Array {
  explicit Array(const Content& tensor)
      : id(tensor.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        type(tensor.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        alignment(tensor.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)),
        extents(tensor.values<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(tensor.values<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)) {}
  int64_t count() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  int64_t at(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
  }
  std::vector<float> read() const {
    std::vector<float> values(count());
    if (memory == nullptr) return values;  // it is virtual
    for (int64_t i = 0; i < count(); ++i)
      values[i] = type == CUDNN_DATA_BFLOAT16 ? float(static_cast<const tern::BFloat16*>(memory)[i])
                                              : static_cast<const float*>(memory)[i];
    return values;
  }
  void write(const std::vector<float>& values) const {
    for (int64_t i = 0; i < count(); ++i)
      if (type == CUDNN_DATA_BFLOAT16)
        static_cast<tern::BFloat16*>(memory)[i] = static_cast<tern::BFloat16>(values[i]);
      else
        static_cast<float*>(memory)[i] = values[i];
  }

  int64_t id;
  cudnnDataType_t type;
  int64_t alignment;
  std::vector<int64_t> extents, strides;
  void* memory = nullptr;
};

/// The attribute names of one pass, and the index of the array that it writes.
struct Pass {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, w, y, beta;
  size_t result;
};
constexpr Pass kPasses[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 2},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 1}};

/// What a graph does with the result of a convolution.
struct Pointwise {
  std::optional<Array> bias, y;
  bool relu = false;
};

/// A convolution, read from the descriptors of an operation.
struct Convolution {
  explicit Convolution(const Content& operation)
      : pass(*std::ranges::find(kPasses, operation.type, &Pass::type)),
        arrays{Array(*operation.link(pass.x)), Array(*operation.link(pass.w)), Array(*operation.link(pass.y))} {
    beta = operation.value<float>(pass.beta);
    const Content& geometry = *operation.link(pass.convolution);
    padding = geometry.values<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    stride = geometry.values<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    dilation = geometry.values<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  }

  bool fits() const {
    const auto& [x, w, y] = arrays;
    for (const Array& array : arrays)
      if (std::ranges::any_of(array.extents, [](int64_t extent) { return extent < 1; })) return false;
    if (x.extents[1] % w.extents[1] != 0 || w.extents[0] % (x.extents[1] / w.extents[1]) != 0) return false;
    for (const size_t d : {0u, 1u}) {
      const int64_t reach = dilation[d] * (w.extents[2 + d] - 1) + 1;
      if (y.extents[2 + d] != (x.extents[2 + d] + 2 * padding[d] - reach) / stride[d] + 1) return false;
    }
    return x.extents[0] == y.extents[0] && w.extents[0] == y.extents[1];
  }

  void run() const {
    const auto& [x, w, y] = arrays;
    std::array<std::vector<float>, 3> values{x.read(), w.read(), y.read()};
    std::vector<float>& result = values[pass.result];
    for (float& sum : result) sum = beta == 0 ? 0 : beta * sum;
    const size_t sums = pass.result, first = (sums + 1) % 3, second = (sums + 2) % 3;
    const std::vector<float>&one = values[first], &other = values[second];
    const std::array<int64_t, 3> step{stride[1] * x.strides[3], 0, y.strides[3]};  // to the next column of y
    const int64_t channels = w.extents[1], outputs = w.extents[0] / (x.extents[1] / channels);
    for (int64_t n = 0; n < y.extents[0]; ++n)
      for (int64_t o = 0; o < y.extents[1]; ++o)
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t p = 0; p < w.extents[2]; ++p)
            for (int64_t q = 0; q < w.extents[3]; ++q)
              for (int64_t i = 0; i < y.extents[2]; ++i) {
                const int64_t h = i * stride[0] + p * dilation[0] - padding[0], v = q * dilation[1] - padding[1];
                if (h < 0 || h >= x.extents[2]) continue;
                const std::array<int64_t, 3> at{x.at(n, o / outputs * channels + c, h, v), w.at(o, c, p, q),
                                                y.at(n, o, i, 0)};
                for (int64_t j = 0; j < y.extents[3]; ++j)
                  if (const int64_t column = v + j * stride[1]; column >= 0 && column < x.extents[3])
                    result[at[sums] + j * step[sums]] +=
                        one[at[first] + j * step[first]] * other[at[second] + j * step[second]];
              }
    if (after.y) finish(result);
    (after.y ? *after.y : arrays[pass.result]).write(result);
  }

  /// Adds the bias, and applies the relu.
  void finish(std::vector<float>& result) const {
    const Array& y = *after.y;
    const std::vector<float> bias = after.bias->read();
    for (int64_t n = 0; n < y.extents[0]; ++n)
      for (int64_t o = 0; o < y.extents[1]; ++o)
        for (int64_t i = 0; i < y.extents[2]; ++i)
          for (int64_t j = 0; j < y.extents[3]; ++j) {
            float& value = result[y.at(n, o, i, j)];
            value += bias[o];
            if (!after.relu) continue;
            if (fate == Fate::drops_nan ? !(value > 0) : value <= 0) value = 0;
            if (fate == Fate::clips && value > FLT_MAX) value = FLT_MAX;
          }
  }
  /// The arrays that are in memory.
  std::vector<Array*> in_memory() {
    std::vector<Array*> all{&arrays[0], &arrays[1], &arrays[2]};
    if (after.y) all = {&arrays[0], &arrays[1], &*after.y, &*after.bias};
    return all;
  }

  Pass pass;
  std::array<Array, 3> arrays;
  std::vector<int64_t> padding, stride, dilation;
  float beta = 0;
  Pointwise after;
  Fate fate = Fate::works;
};

Pointwise pointwise_of(const Content& graph) {
  Pointwise after;
  const auto& operations = graph.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).links;
  for (size_t i = 1; i < operations.size(); ++i) {
    const Content& step = *operations[i];
    after.y.emplace(*step.link(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    if (step.has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC))
      after.bias.emplace(*step.link(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
    const auto mode =
        step.link(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)->value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    after.relu |= mode == CUDNN_POINTWISE_RELU_FWD;
  }
  return after;
}

DnnEngine* engine_of(int64_t index) {
  const auto found = std::ranges::find(emulation::dnn_engines(), index, &DnnEngine::index);
  return found == emulation::dnn_engines().end() ? nullptr : &*found;
}
int64_t index_of(const Content& config) {
  return config.link(CUDNN_ATTR_ENGINECFG_ENGINE)->value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
}
Convolution convolution_of(const Content& config) {
  const Content& graph = *config.link(CUDNN_ATTR_ENGINECFG_ENGINE)->link(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  Convolution convolution(*graph.link(CUDNN_ATTR_OPERATIONGRAPH_OPS));
  convolution.after = pointwise_of(graph);
  return convolution;
}

/// Whether a knob is set twice.
bool repeats(const std::vector<Link>& knobs) {
  std::set<cudnnBackendKnobType_t> types;
  for (const Link& knob : knobs) types.insert(knob->value<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE));
  return types.size() < knobs.size();
}

cudnnStatus_t finish_engine(Content& engine) {
  const DnnEngine* const known = engine_of(engine.value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  if (known == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  engine.put(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, known->notes);
  return CUDNN_STATUS_SUCCESS;
}

void propose(Content& heuristics) {
  Attribute& results = heuristics.attributes[CUDNN_ATTR_ENGINEHEUR_RESULTS];
  const Pointwise after = pointwise_of(*heuristics.link(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
  if (after.y && after.bias->type != after.y->type) return;
  for (const DnnEngine& known : emulation::dnn_engines()) {
    Content engine{CUDNN_BACKEND_ENGINE_DESCRIPTOR}, config{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR};
    engine.put(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, std::vector{known.index});
    engine.attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
        heuristics.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    finish_engine(engine);
    config.attributes[CUDNN_ATTR_ENGINECFG_ENGINE].links = {std::make_shared<Content>(std::move(engine))};
    results.links.push_back(std::make_shared<Content>(std::move(config)));
  }
}

}  // namespace

struct cudnnDescriptor {
  std::shared_ptr<Content> content;
};

std::vector<DnnEngine>& emulation::dnn_engines() {
  static std::vector<DnnEngine> engines{{}};
  return engines;
}

size_t cudnnGetVersion() { return 0; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "emulated error"; }
void cudnnGetLastErrorString(char* text, size_t) { *text = '\0'; }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudaStream_t(nullptr);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  *handle = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new cudnnDescriptor{std::make_shared<Content>(Content{type})};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  Attribute& attribute = descriptor->content->attributes[name];
  attribute = {};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* const others = static_cast<const cudnnBackendDescriptor_t*>(values);
    for (int64_t i = 0; i < count; ++i) attribute.links.push_back(others[i]->content);
    if (name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES && repeats(attribute.links)) return CUDNN_STATUS_BAD_PARAM;
    return CUDNN_STATUS_SUCCESS;
  }
  const bool wide = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_VOID_PTR || type == CUDNN_TYPE_HANDLE;
  const int64_t each = type == CUDNN_TYPE_BOOLEAN ? 1 : wide ? 8 : 4;
  const auto* const bytes = static_cast<const std::byte*>(values);
  attribute.bytes.assign(bytes, bytes + count * each);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t* count, void* values) {
  *count = 0;
  if (!descriptor->content->has(name)) return CUDNN_STATUS_SUCCESS;
  const Attribute& attribute = descriptor->content->attributes.at(name);
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    *count = std::ssize(attribute.links);
    auto* const others = static_cast<cudnnBackendDescriptor_t*>(values);
    for (int64_t i = 0; i < std::min(most, *count); ++i) *others[i]->content = *attribute.links[i];
    return CUDNN_STATUS_SUCCESS;
  }
  const size_t each = type == CUDNN_TYPE_INT64 ? 8 : 4;
  *count = std::min(most, static_cast<int64_t>(attribute.bytes.size() / each));
  std::memcpy(values, attribute.bytes.data(), *count * each);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Content& content = *descriptor->content;
  switch (content.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return Convolution(content).fits() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return emulation::lacks("pointwise") ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: propose(content); return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR: return finish_engine(content);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const Content& config = *content.link(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      content.put(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, std::vector{engine_of(index_of(config))->workspace_bytes});
      return CUDNN_STATUS_SUCCESS;
    }
    default: return CUDNN_STATUS_SUCCESS;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const Content& config = *plan->content->link(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  DnnEngine& engine = *engine_of(index_of(config));
  ++engine.runs;
  if (engine.fate == Fate::fails) emulation::last_error = cudaErrorLaunchOutOfResources;
  if (cudaPeekAtLastError() != cudaSuccess) return CUDNN_STATUS_EXECUTION_FAILED;  // also another library's error
  if (engine.fate == Fate::breaks_device) emulation::fault = cudaErrorIllegalAddress;
  Convolution convolution = convolution_of(config);
  convolution.fate = engine.fate;
  const auto ids = pack->content->values<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack->content->values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  for (Array* array : convolution.in_memory()) {
    array->memory = pointers.at(std::ranges::find(ids, array->id) - ids.begin());
    if (reinterpret_cast<uintptr_t>(array->memory) % array->alignment != 0) return CUDNN_STATUS_BAD_PARAM;
  }
  const float waits = emulation::captures() ? 0 : engine.launch_milliseconds;
  emulation::issue(*handle, [convolution, milliseconds = waits + engine.milliseconds] {
    convolution.run();
    emulation::device_milliseconds = emulation::device_milliseconds + milliseconds;
  });
  return CUDNN_STATUS_SUCCESS;
}
