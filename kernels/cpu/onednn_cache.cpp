#include "tern/kernels/cpu/onednn_cache.h"

#include <map>
#include <mutex>

#include "tern/core/error.h"
#include "tern/core/parallel.h"

namespace tern::cpu::onednn {
namespace {

/// Several networks' worth; beyond it the cache starts anew.
constexpr size_t kMaxEntries = 1024;

}  // namespace

CacheKey::CacheKey(Operation operation, DType dtype)
    : values_{static_cast<int64_t>(operation), static_cast<int64_t>(dtype), thread_count()} {}

CacheKey& CacheKey::add(std::initializer_list<int64_t> values) {
  values_.insert(values_.end(), values);
  return *this;
}

CacheKey& CacheKey::add(const Shape& shape) {
  values_.push_back(shape.rank());
  values_.insert(values_.end(), shape.begin(), shape.end());
  return *this;
}

std::shared_ptr<const Cached> cached(const CacheKey& key, const std::function<Cached()>& make) {
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

}  // namespace tern::cpu::onednn
