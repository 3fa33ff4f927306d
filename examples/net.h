#pragma once

#include <tern/tern.h>

/// The model of training_loop.cpp, for several programs.
struct Net final : tern::Layer {
  tern::Variable forward(const tern::Variable& x) override { return fc(flatten(pool(conv(x)))); }
  tern::Conv2d& conv = add<tern::Conv2d>("conv", {.in = 1, .out = 16, .kernel = 5, .padding = 2, .relu = true});
  tern::MaxPool2d& pool = add<tern::MaxPool2d>("pool", {.window = 2});
  tern::Linear& fc = add<tern::Linear>("fc", {.in = 16 * 14 * 14, .out = 10});
};
