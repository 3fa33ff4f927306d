#pragma once

#include <string>
#include <vector>

namespace tern {

/// The flags of every method, codec and exchange that the transports are compared with.
inline const std::vector<std::vector<std::string>> kWorkerMethods = {
    {},
    {"--codec", "ternary"},
    {"--codec", "error-feedback:qsgd:bits=4", "--overlap", "--keep-float", "fc2.*"},
    {"--codec", "error-feedback:qsgd:bits=4", "--stale", "1"},
    {"--codec", "onebit", "--exchange", "reduce-scatter", "--stale", "1"},
    {"--method", "local-sgd", "--local-steps", "3", "--codec", "ternary"},
    {"--exchange", "powersgd:rank=1,start=2"},
    {"--codec", "hadamard:bits=3"},
    {"--method", "diloco", "--local-steps", "4", "--fragments", "2", "--delay", "1", "--mix", "0.3"},
    {"--method", "sparseloco", "--local-steps", "3", "--exchange", "allgather-sent"},
    {"--method", "noloco", "--local-steps", "3"},
    {"--method", "demo", "--optimizer", "sgd", "--lr", "0.001"},
    {"--method", "ist", "--local-steps", "3"},
    {"--method", "ist", "--local-steps", "3", "--exchange", "peer", "--codec", "fp16", "--ist-scope", "filters"}};

}  // namespace tern
