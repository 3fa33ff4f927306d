#include <tern/trainer/application.h>
#include "net.h"

int main(int argc, char** argv) {
  return tern::train(argc, argv,
                     {.name = "train_net", .model = [](const tern::ModelSpec&) { return std::make_unique<Net>(); }});
}
