#pragma once

#include "tern/dist/exchange/exchange.h"
#include "tests/dist/codec/codec_support.h"
#include "tests/dist/comm/transports.h"

namespace tern::test {

/// The gradients of rank `rank`: standard normal numbers, one tensor of each shape.
inline FusedGradients gradients_of(int rank, const std::vector<Shape>& shapes, uint32_t step = 0) {
  FusedGradients message;
  for (const Shape& shape : shapes) {
    const auto number = static_cast<uint32_t>(message.size());
    const GradientTag tag = {
        "layer" + std::to_string(number),
        {.seed = 7, .purpose = Purpose::codec, .owner = static_cast<uint32_t>(rank), .step = step, .tensor = number}};
    message.push_back({tag, gaussian(shape, 1 + static_cast<uint64_t>(rank) + 100 * number + 10000 * step)});
  }
  return message;
}

inline FusedGradients on_device(FusedGradients message, Device device) {
  for (TaggedGradient& tagged : message) tagged.gradient = tagged.gradient.to(device);
  return message;
}

/// The results of an exchange on one rank.
struct Exchanged {
  std::vector<std::vector<float>> means;
  Traffic traffic;
  Device device;  ///< of the means
};

/// Sends one message through an exchange, as one of its ranks. The gradients are on `device`.
inline Exchanged exchange_on(Communicator& c, const std::string& exchange, const std::string& codec,
                             const std::vector<Shape>& shapes, Device device = {}) {
  Exchanged mine;
  const auto coder = make_codec(codec);
  const auto way = make_exchange(exchange, *coder, c);
  c.barrier().wait();
  const Traffic before = c.traffic();
  const auto means = way->start(on_device(gradients_of(c.rank(), shapes), device))();
  mine.traffic = c.traffic() - before;
  mine.device = means.front().device();
  c.barrier().wait();
  for (size_t i = 0; i < means.size(); ++i) {
    EXPECT_EQ(means[i].shape(), shapes[i]);
    mine.means.push_back(means[i].to_vector<float>());
  }
  return mine;
}

/// Does so on every rank of a job.
inline std::vector<Exchanged> exchange_once(const TransportKind& kind, int ranks, const std::string& exchange,
                                            const std::string& codec, const std::vector<Shape>& shapes,
                                            Device device = {}) {
  std::vector<Exchanged> results(static_cast<size_t>(ranks));
  const auto errors = with_communicators(kind.make(ranks, {}), [&](Communicator& c) {
    results[static_cast<size_t>(c.rank())] = exchange_on(c, exchange, codec, shapes, device);
  });
  EXPECT_EQ(errors, std::vector<std::string>(static_cast<size_t>(ranks)));
  return results;
}

struct ExchangePair {
  const char* exchange;
  const char* codec;
};
inline std::ostream& operator<<(std::ostream& stream, const ExchangePair& pair) {
  return stream << pair.exchange << " " << pair.codec;
}

/// Every exchange with its codecs.
inline const ExchangePair kExchangePairs[] = {
    {"ring", "none"},
    {"ring", "fp16"},
    {"ring", "bf16"},
    {"allgather", "none"},
    {"allgather", "ternary"},
    {"allgather", "ternary:share=on,bucket=100,pack=5trit"},
    {"allgather", "ternary:pack=entropy"},
    {"allgather", "qsgd"},
    {"allgather", "qsgd:bits=2,bucket=128,norm=max,code=elias"},
    {"allgather", "onebit"},
    {"allgather", "error-feedback:topk:ratio=0.1"},
    {"allgather", "topk-block"},
    {"allgather", "hadamard:bits=3"},
    {"allgather-sent", "topk-block:decay=0.9,bits=32"},
    {"allgather-sent", "error-feedback:randk:ratio=0.1"},
    {"reduce-scatter", "ternary"},
    {"reduce-scatter", "ternary:share=on,bucket=160,pack=5trit"},
    {"reduce-scatter", "qsgd:bucket=64"},
    {"reduce-scatter", "onebit"},
    {"reduce-scatter", "fp16"},
    {"reduce-scatter", "bf16"},
    {"server", "none"},
    {"server", "ternary"},
    {"server", "ternary:share=off"},
    {"server", "ternary:bucket=100,pack=entropy"},
    {"server", "error-feedback:qsgd:code=elias"},
    {"ternary-ring", "ternary"},
    {"ternary-ring", "ternary:bucket=100,pack=5trit"},
    {"powersgd", "none"},
    {"powersgd:rank=1,start=0", "none"},
};

/// Shapes of the tensors of a message.
inline const std::vector<Shape> kExchangeShapes[] = {{{0}}, {{1}}, {{7}, {0, 3}, {20, 1, 5, 5}, {33}}, {{100003}}};

}  // namespace tern::test
