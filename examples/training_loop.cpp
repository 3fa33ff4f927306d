#include <tern/tern.h>
#include <iostream>

using namespace tern;

struct Net final : Layer {
  Variable forward(const Variable& x) override { return fc(flatten(pool(conv(x)))); }
  Conv2d& conv = add<Conv2d>("conv", {.in = 1, .out = 16, .kernel = 5, .padding = 2, .relu = true});
  MaxPool2d& pool = add<MaxPool2d>("pool", {.window = 2});
  Linear& fc = add<Linear>("fc", {.in = 16 * 14 * 14, .out = 10});
};

int main(int argc, char** argv) {
  wait_passively(argc, argv);  // threads without work sleep
  const auto digits = make_digits(1, Split::train);
  DataLoader loader(digits, {.size = digits.size(), .shuffle = true}, {.batch_size = 64});
  Net net;
  net.initialize(1);  // draws the first values; 1 is the seed
  Sgd sgd(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  loader.start({.epoch = 0});
  for (int step = 1; auto batch = loader.next(); ++step) {
    sgd.zero_gradients();
    const Variable loss = cross_entropy(net((*batch)["image"]), (*batch)["label"]);
    loss.backward();
    sgd.step();
    if (step % 100 == 0) std::cout << "step " << step << "  loss " << loss.value().item() << "\n";
  }
}
