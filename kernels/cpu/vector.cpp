#include "tern/kernels/cpu/vector.h"

#include <algorithm>
#include <atomic>

namespace tern::cpu {
namespace {

constinit std::atomic<VectorSet> widest{kVectorSets.back()};

}  // namespace

VectorSet vector_set() {
  static const VectorSet processor = detail::processor_vector_set();
  return std::min(processor, widest.load(std::memory_order_relaxed));
}

NarrowerVectors::NarrowerVectors(VectorSet set) { widest = set; }
NarrowerVectors::~NarrowerVectors() { widest = kVectorSets.back(); }

}  // namespace tern::cpu
