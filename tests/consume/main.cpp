#include <tern/tern.h>

#include <cstdio>

int main() {
  const auto tensor = tern::Tensor::full({2, 3}, 0.5);
  double sum = 0;
  for (const float element : tensor.span<float>()) sum += element;
  std::printf("sum %g\n", sum);
  return sum == 3 ? 0 : 1;
}
