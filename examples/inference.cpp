// What a trained model says about pictures of digits:
//
//   train_net --save net.safetensors
//   inference net.safetensors seven.pgm

#include <tern/data/adapt_image.h>
#include <tern/data/image_decoder.h>
#include <tern/tern.h>

#include <algorithm>
#include <iostream>

#include "net.h"

using namespace tern;

int main(int argc, char** argv) try {
  wait_passively(argc, argv);
  check_input(argc > 2, "expected a model and one or more pictures");
  Net net;
  net.initialize(1);
  const StateDict state = read_safetensors(argv[1]).tensors;
  try {
    net.load_state(state);
  } catch (const InputError& error) {
    fail_input({argv[1], ": ", error.what()});
  }
  net.set_training(false);
  const NoGradient no_gradient;  // record nothing for a backward pass

  constexpr ImageSpec kDigit = {.channels = 1, .height = kDigitSide, .width = kDigitSide, .classes = 10};
  const Transform transform;  // the normalization that train_net uses
  for (int i = 2; i < argc; ++i) {
    const auto pixels = adapt_digit(read_image(argv[i]), kDigit);  // 28 x 28, centred, white on black
    Tensor x = Tensor::empty({1, 1, kDigitSide, kDigitSide}, {.format = MemoryFormat::channels_last});
    transform.apply(kDigit, {}, pixels, x.span<float>());
    const Tensor probabilities = softmax(net(x)).value();
    const auto p = probabilities.span<float>();
    const auto best = std::ranges::max_element(p);
    std::cout << argv[i] << ": " << best - p.begin() << " (" << *best << ")\n";
  }
} catch (const InputError& error) {
  std::cerr << "inference: " << error.what() << "\n";
  return 2;
}
