#include <tern/dist/comm/launch.h>
#include <tern/tern.h>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include "net.h"

using namespace tern;

int main() try {
  const auto place = find_place([](const char* name) { return std::getenv(name); });
  check_input(place.has_value(), "expected TERN_RANK and TERN_WORLD_SIZE, or a launcher");
  set_thread_count(std::max(1, thread_count() / place->local_size));
  TransportCommunicator communicator(make_tcp({
      .rank = place->rank,
      .size = place->size,
      .master = place->master,
      .token = place->local_size == place->size ? token_of_machine() : token_from_environment(),
  }));

  const auto digits = make_digits(1, Split::train);
  DataLoader loader(digits, {.size = digits.size(), .shuffle = true, .rank = place->rank, .ranks = place->size},
                    {.batch_size = 64 / place->size});
  Net net;
  net.initialize(1);  // the same first values on every rank
  Sgd sgd(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  DataParallel optimizer(net, sgd, communicator, {.averaging = {.codec = "ternary", .seed = 1}});

  loader.start({.epoch = 0});
  for (int64_t step = 0; auto batch = loader.next(); ++step) {
    optimizer.begin_step(step);
    sgd.zero_gradients();
    cross_entropy(net((*batch)["image"]), (*batch)["label"]).backward();
    optimizer.step();
  }
  optimizer.consolidate();
  if (place->rank == 0) write_safetensors("net.safetensors", net.state());
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
