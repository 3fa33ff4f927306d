#include <tern/networks/lenet.h>
#include <tern/tern.h>
#include <iostream>

/// A published network in a program of one's own.
int main() {
  const tern::networks::Network& network = tern::networks::lenet();
  tern::networks::LeNet model;
  model.initialize(1);
  const tern::Variable logits = model(tern::Tensor::full({2, 1, 28, 28}, 0.5));
  std::cout << network.name << ": " << model.parameter_count() << " parameters, " << to_string(logits.shape()) << "\n";
}
