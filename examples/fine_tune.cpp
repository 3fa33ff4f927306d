// Fine-tuning: a network learns the digits 0 to 4. Then its convolutions are frozen, and a new last layer learns the
// digits 5 to 9 from 50 pictures: about 84 % of new pictures are right, and 66 % without the first network.

#include <tern/tern.h>
#include <iostream>

using namespace tern;

struct Net final : Layer {
  Variable forward(const Variable& x) override { return fc(flatten(features(x))); }
  Net() {
    features.append<Conv2d>({.in = 1, .out = 16, .kernel = 5, .relu = true}).append<MaxPool2d>({.window = 2});
    features.append<Conv2d>({.in = 16, .out = 32, .kernel = 5, .relu = true}).append<MaxPool2d>({.window = 2});
  }
  Sequential& features = add<Sequential>("features");
  Linear& fc = add<Linear>("fc", {.in = 32 * 4 * 4, .out = 5});
};

/// The first `count` pictures with labels from `first` to `first` + 4, which become 0 to 4.
std::shared_ptr<const ImageDataset> five_digits(Split split, int64_t first, int64_t count) {
  const auto digits = make_digits(1, split);
  const ImageSpec spec{.channels = 1, .height = 28, .width = 28, .classes = 5};
  std::vector<uint8_t> pixels, labels, picture(28 * 28);
  for (int64_t i = 0; i < digits.size() && std::ssize(labels) < count; ++i) {
    const int64_t label = digits.read(i, picture);
    if (label < first || label >= first + 5) continue;
    pixels.insert(pixels.end(), picture.begin(), picture.end());
    labels.push_back(static_cast<uint8_t>(label - first));
  }
  return std::make_shared<MemoryDataset>(spec, std::move(pixels), std::move(labels));
}

void train(Net& net, const ImageDataset& data, int epochs) {
  DataLoader loader(data, {.size = data.size(), .shuffle = true}, {.batch_size = 20});
  Sgd sgd(net.trained_parameters(), {.lr = 0.01, .momentum = 0.9});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    loader.start({.epoch = epoch});
    while (const auto batch = loader.next()) {
      sgd.zero_gradients();
      cross_entropy(net((*batch)["image"]), (*batch)["label"]).backward();
      sgd.step();
    }
  }
}

/// The share of right answers on new pictures.
double accuracy(Net& net, const ImageDataset& data) {
  const EvaluationMode mode(net);
  const NoGradient no_gradient;
  DataLoader loader(data, {.size = data.size()}, {.batch_size = 100});
  loader.start({});
  double right = 0;
  while (const auto batch = loader.next()) {
    const auto found = argmax(net((*batch)["image"]).value()).to_vector<int64_t>();
    const auto expected = (*batch)["label"].to_vector<int64_t>();
    for (size_t i = 0; i < expected.size(); ++i) right += found[i] == expected[i];
  }
  return 100 * right / static_cast<double>(data.size());
}

int main(int argc, char** argv) {
  wait_passively(argc, argv);
  Net first;
  first.initialize(1);
  train(first, *five_digits(Split::train, 0, 5000), 2);
  const auto test = five_digits(Split::test, 5, 2000), few = five_digits(Split::train, 5, 50);

  StateDict learned = first.state();
  Net tuned, whole;
  for (Net* net : {&tuned, &whole}) net->initialize(2);
  StateDict features;
  for (const auto& [name, tensor] : learned)
    if (name.starts_with("features.")) features.add(name, tensor);
  const PartialCopy copy = tuned.load_matching_state(features);
  tuned.freeze("features.*");
  std::cout << "taken " << copy.taken.size() << " tensors, " << copy.missing.size() << " are new\n";
  for (Net* net : {&tuned, &whole}) train(*net, *few, 20);
  std::cout << "fine-tuned: accuracy " << accuracy(tuned, *test) << " %\n"
            << "from the start: accuracy " << accuracy(whole, *test) << " %\n";
}
