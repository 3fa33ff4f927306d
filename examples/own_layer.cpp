#include <tern/tern.h>
#include <iostream>

using namespace tern;

/// y = gain · x, with one learned gain per channel of x [N, C, H, W]. Parameters are f32, but x may be bf16.
struct Gain final : Layer {
  struct Options {
    int64_t channels = 1;
  };
  explicit Gain(const Options& options) : gain(add_parameter("gain", {1, options.channels, 1, 1}, constant(1))) {}
  Variable forward(const Variable& x) override { return x * convert(gain.variable(), x.value().dtype()); }
  Parameter& gain;
};

int main(int argc, char** argv) {
  wait_passively(argc, argv);
  Sequential net;
  net.append<Conv2d>({.in = 3, .out = 4}).append<Gain>({.channels = 4});
  net.initialize(1);
  sum(net(Tensor::full({2, 3, 5, 5}, 0.5))).backward();
  for (const auto& [name, parameter] : net.parameters())
    std::cout << name << " " << to_string(parameter->gradient().shape()) << "\n";
}
