#pragma once

#include "tern/apps/models/alexnet.h"

namespace tern::models {

/// The convolutions of AlexNet in one tower (Krizhevsky, 2014), named as torchvision's.
struct AlexNetFeatures final : Module {
  struct Options {};
  explicit AlexNetFeatures(const Options& = {}) {}

  Variable forward(const Variable& x) override { return pool5(conv5(conv4(conv3(pool2(conv2(pool1(conv1(x)))))))); }

  Conv2d& conv1 = add<Conv2d>("0", {.in = 3, .out = 64, .kernel = 11, .stride = 4, .padding = 2, .relu = true});
  MaxPool2d& pool1 = add<MaxPool2d>("2", {.window = 3, .stride = 2});
  Conv2d& conv2 = add<Conv2d>("3", {.in = 64, .out = 192, .kernel = 5, .padding = 2, .relu = true});
  MaxPool2d& pool2 = add<MaxPool2d>("5", {.window = 3, .stride = 2});
  Conv2d& conv3 = add<Conv2d>("6", {.in = 192, .out = 384, .kernel = 3, .padding = 1, .relu = true});
  Conv2d& conv4 = add<Conv2d>("8", {.in = 384, .out = 256, .kernel = 3, .padding = 1, .relu = true});
  Conv2d& conv5 = add<Conv2d>("10", {.in = 256, .out = 256, .kernel = 3, .padding = 1, .relu = true});
  MaxPool2d& pool5 = add<MaxPool2d>("12", {.window = 3, .stride = 2});
};

/// What classifies those features.
struct AlexNetClassifier final : Module {
  using Options = AlexNetOptions;
  explicit AlexNetClassifier(const Options& o)
      : dropout1(add<Dropout>("0", {.probability = o.dropout})),
        fc1(add<Linear>("1", {.in = 256 * 6 * 6, .out = 4096, .relu = true})),
        dropout2(add<Dropout>("3", {.probability = o.dropout})),
        fc2(add<Linear>("4", {.in = 4096, .out = 4096, .relu = true})),
        fc3(add<Linear>("6", {.in = 4096, .out = o.classes})) {}

  Variable forward(const Variable& x) override { return fc3(fc2(dropout2(fc1(dropout1(flatten(x)))))); }

  Dropout& dropout1;
  Linear& fc1;
  Dropout& dropout2;
  Linear& fc2;
  Linear& fc3;
};

/// AlexNet in one tower (Krizhevsky, "One weird trick", 2014) with torchvision's names and first values: 61,100,840
/// parameters for 1000 classes; x [N, 3, 224, 224].
struct OneTowerAlexNet final : Module {
  using Options = AlexNetOptions;
  explicit OneTowerAlexNet(const Options& options) : classifier(add<AlexNetClassifier>("classifier", options)) {}
  Variable forward(const Variable& x) override { return classifier(features(x)); }

  AlexNetFeatures& features = add<AlexNetFeatures>("features");
  AlexNetClassifier& classifier;
};

}  // namespace tern::models
