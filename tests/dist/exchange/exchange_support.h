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
};

/// Sends one message through an exchange on every rank of a job. The gradients are on `device`.
inline std::vector<Exchanged> exchange_once(const TransportKind& kind, int ranks, const std::string& exchange,
                                            const std::string& codec, const std::vector<Shape>& shapes,
                                            Device device = {}) {
  std::vector<Exchanged> results(static_cast<size_t>(ranks));
  const auto errors = with_communicators(kind.make(ranks, {}), [&](Communicator& c) {
    const auto coder = make_codec(codec);
    const auto way = make_exchange(exchange, *coder, c);
    c.barrier().wait();
    const Traffic before = c.traffic();
    const auto means = way->start(on_device(gradients_of(c.rank(), shapes), device))();
    Exchanged& mine = results[static_cast<size_t>(c.rank())];
    mine.traffic = c.traffic() - before;
    c.barrier().wait();
    for (size_t i = 0; i < means.size(); ++i) {
      EXPECT_EQ(means[i].shape(), shapes[i]);
      mine.means.push_back(means[i].to_vector<float>());
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(static_cast<size_t>(ranks)));
  return results;
}

}  // namespace tern::test
