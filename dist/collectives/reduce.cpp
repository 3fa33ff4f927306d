#include "tern/dist/collectives/reduce.h"

#include "tern/core/error.h"
#include "tern/core/visit.h"

namespace tern::detail {
namespace {

template <class T>
void sum(T* __restrict into, const T* __restrict from, size_t count) {
  for (size_t i = 0; i < count; ++i) into[i] = static_cast<wider_t<T>>(into[i]) + static_cast<wider_t<T>>(from[i]);
}

template <class T>
void max(T* __restrict into, const T* __restrict from, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const wider_t<T> a = into[i], b = from[i];
    into[i] = a > b || a != a ? a : b;
  }
}

}  // namespace

void reduce(Reduction reduction, DType dtype, Bytes into, ConstBytes from) {
  visit_dtype(dtype, [&]<class T>(T) {
    const auto target = reinterpret_cast<T*>(into.data());
    const auto source = reinterpret_cast<const T*>(from.data());
    const size_t count = into.size() / sizeof(T);
    if (reduction == Reduction::sum)
      sum(target, source, count);
    else
      max(target, source, count);
  });
}

}  // namespace tern::detail
