// The weights of a PyTorch model:
//
//   model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
//   safetensors.torch.save_file(model.state_dict(), "torch_mlp.safetensors")
//   print(model(torch.tensor([[1., 2., 3., 4.]])))
//
// tern's layers have PyTorch's names and shapes, so a state_dict loads as it is.

#include <tern/tern.h>

#include <iostream>

using namespace tern;

int main(int argc, char** argv) try {
  wait_passively(argc, argv);
  check_input(argc == 2, "expected a file, such as torch_mlp.safetensors");
  Sequential net;
  net.append<Linear>({.in = 4, .out = 8}).append<Relu>().append<Linear>({.in = 8, .out = 3});
  net.initialize(1);
  net.load_state(read_safetensors(argv[1]).tensors);
  const Variable y = net(Tensor::from<float>({1, 4}, std::vector<float>{1, 2, 3, 4}));
  for (const float value : y.value().span<float>()) std::cout << value << " ";
  std::cout << "\n";
} catch (const InputError& error) {
  std::cerr << "state_dict: " << error.what() << "\n";
  return 2;
}
