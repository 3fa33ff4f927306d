#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "tern/kernels/cpu/onednn.h"

namespace tern::cpu::onednn {

enum class Operation : uint8_t { forward, backward_data, backward_weights };

/// Everything that a primitive was made for: operation, dtype, number of threads, shapes and settings.
class CacheKey {
 public:
  CacheKey(Operation operation, DType dtype);
  CacheKey& add(std::initializer_list<int64_t> values);
  CacheKey& add(const Shape& shape);
  friend auto operator<=>(const CacheKey&, const CacheKey&) = default;

 private:
  std::vector<int64_t> values_;
};

/// A convolution's primitive and how it wants its weights; empty where oneDNN has none.
struct Cached {
  dnnl::primitive primitive;
  dnnl::memory::desc scratchpad;
  dnnl::memory::desc weights, plain;  ///< in the primitive's own layout, and in tern's
  dnnl::primitive reorder;            ///< between the two
};

/// What `make` made for this key, now or before. Thread-safe; keeps a bounded number.
std::shared_ptr<const Cached> cached(const CacheKey& key, const std::function<Cached()>& make);

}  // namespace tern::cpu::onednn
