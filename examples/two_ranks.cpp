#include <tern/tern.h>
#include <iostream>
#include "net.h"

using namespace tern;

int main(int argc, char** argv) try {
  wait_passively(argc, argv);
  const Job job = join();
  const auto digits = make_digits(1, Split::train);
  DataLoader loader(digits, {.size = digits.size(), .shuffle = true, .rank = job.rank, .ranks = job.size},
                    {.batch_size = 64 / job.size});
  Net net;
  net.initialize(1);  // the same first values on every rank
  Sgd sgd(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  DataParallel optimizer(net, sgd, *job.communicator, {.averaging = {.codec = "ternary", .seed = 1}});

  loader.start({.epoch = 0});
  for (int64_t step = 0; auto batch = loader.next(); ++step) {
    optimizer.begin_step(step);
    sgd.zero_gradients();
    cross_entropy(net((*batch)["image"]), (*batch)["label"]).backward();
    optimizer.step();
  }
  optimizer.consolidate();
  if (job.rank == 0) write_safetensors("net.safetensors", net.state());
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
