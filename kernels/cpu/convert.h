#pragma once

#include "tern/core/tensor.h"

namespace tern::cpu {

/// y = x in y's dtype; same shape and format; fast between f32 and bf16.
void convert_elements(const Tensor& x, const Tensor& y);

/// x itself where it is f32, else a converted copy.
Tensor as_f32(const Tensor& x);

/// Where a kernel that computes in f32 writes its result: `y` itself where it is f32, else a buffer that is converted
/// into y at the end of scope.
class F32Result {
 public:
  explicit F32Result(const Tensor& y);
  ~F32Result();
  F32Result(const F32Result&) = delete;
  F32Result& operator=(const F32Result&) = delete;

  const Tensor& tensor() const { return buffer_; }

 private:
  Tensor y_, buffer_;
};

}  // namespace tern::cpu
