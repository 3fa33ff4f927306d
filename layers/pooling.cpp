#include "tern/layers/pooling.h"

namespace tern {

MaxPool2d::MaxPool2d(const Options& options)
    : geometry_{options.window, options.stride.value_or(options.window), options.padding, options.ceil_mode} {}
Variable MaxPool2d::forward(const Variable& x) { return max_pool2d(x, geometry_); }

AvgPool2d::AvgPool2d(const Options& options)
    : geometry_{options.window, options.stride.value_or(options.window), options.padding, options.ceil_mode,
                options.count_include_pad} {}
Variable AvgPool2d::forward(const Variable& x) { return average_pool2d(x, geometry_); }

Variable GlobalAvgPool2d::forward(const Variable& x) { return global_average_pool2d(x); }

}  // namespace tern
