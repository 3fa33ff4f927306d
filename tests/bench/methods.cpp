#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "tern/core/parallel.h"
#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/transport_communicator.h"
#include "tern/dist/methods/demo.h"
#include "tern/dist/methods/local_sgd.h"
#include "tern/dist/methods/noloco.h"
#include "tern/layers/linear.h"
#include "tern/optim/sgd.h"
#include "tests/bench/case.h"

namespace tern::bench {
namespace {

constexpr int64_t kSide = 5000, kModelElements = kSide * kSide;

/// A model of one matrix, and the only rank of a job. So a round is what the rank computes for it, and nothing travels.
struct Rank {
  Linear model{{.in = kSide, .out = kSide, .bias = false}};
  std::unique_ptr<Sgd> local;
  std::unique_ptr<TransportCommunicator> communicator;
  Tensor gradient = Tensor::empty({kSide, kSide});
  int64_t step = 0;

  Rank() {
    model.initialize(1);
    local = std::make_unique<Sgd>(model.parameters(), Sgd::Options{.lr = 1e-3});
    communicator = std::make_unique<TransportCommunicator>(std::move(make_in_process(1).front()));
    const RandomStream random({.seed = 1, .purpose = Purpose::test});
    const auto values = gradient.span<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = 1e-3f * random.normal(i % 1000003);
  }
};

/// What a rank of four records while it does 1,000 ring all-reduces: six messages leave and six come, in each of them.
void record_operations() {
  static const WorkQueue second_thread;  // in a process with one thread, locks cost nothing
  static FlightRecorder recorder(4);
  static uint32_t sequence = 0;
  for (int i = 0; i < 1000; ++i) {
    const Message message = {.sequence = ++sequence, .operation = Operation::all_reduce_sum, .dtype = DType::f32};
    recorder.queue(message);
    recorder.run(message.sequence, [&] {
      for (int step = 0; step < 6; ++step) {
        recorder.sent(1, message, 1000);
        recorder.wait(WaitRecord{3, message.sequence, Clock::now()});
        recorder.received(3, message, 1000);
      }
      recorder.wait(WaitRecord{-1, message.sequence, Clock::now()});
      recorder.wait({});
    });
  }
}

/// `passes` over the elements are the least that a round can take: each array is read or written once.
template <class Prepare>
void add(std::vector<Case>& cases, const char* name, int passes, Prepare prepare) {
  for (const int threads : kThreads)
    cases.push_back({fmt::format("method/{}/t{}", name, threads),
                     threads,
                     prepare,
                     {static_cast<double>(passes) * kModelElements * sizeof(float), "GB/s that must move"}});
}

/// A method whose every step is a round. If parameters have no gradient, the local optimizer does nothing.
template <class Method>
void add_method(std::vector<Case>& cases, const char* name, int passes, const typename Method::Options& options,
                bool has_gradient) {
  add(cases, name, passes, [=] {
    const auto rank = std::make_shared<Rank>();
    const auto method = std::make_shared<Method>(rank->model, *rank->local, *rank->communicator, options);
    return [=] {
      if (has_gradient) rank->model.parameters().front().parameter->set_gradient(rank->gradient);
      method->begin_step(rank->step++);
      method->step();
    };
  });
}

void add_averaging(std::vector<Case>& cases, const char* name, int passes, const AveragingOptions& options) {
  add(cases, name, passes, [=] {
    const auto rank = std::make_shared<Rank>();
    const auto averaging =
        std::make_shared<Averaging>(*rank->communicator, averaged_parameters(rank->model, name), options);
    return [=] {
      averaging->begin(rank->step++);
      averaging->give(0, rank->gradient);
      averaging->finish();
    };
  });
}

}  // namespace

// What a rank of each method computes for one round, without the bytes that travel. The rate beside memcpy's says how
// far a round is from the time of moving the bytes that it must move.
void add_methods(std::vector<Case>& cases) {
  add(cases, "memcpy", 2, [] {
    return [from = Tensor::full({kModelElements}, 1), to = Tensor::zeros({kModelElements})] {
      parallel_for(0, kModelElements, 1 << 16, [&](int64_t first, int64_t last) {
        std::memcpy(to.data<float>() + first, from.data<float>() + first,
                    static_cast<size_t>(last - first) * sizeof(float));
      });
    };
  });
  // θ and φ give Δ; Δ, φ and, with momentum, m give the new φ and m; θ becomes φ.
  const LocalSgd::Options plain = {.local_steps = 1, .check_every = 0};
  LocalSgd::Options diloco = plain, sparse = plain;
  diloco.outer = {.lr = 0.7, .momentum = 0.9};
  sparse.averaging.codec = "topk-block:decay=0.95";
  add_method<LocalSgd>(cases, "local_sgd", 7, plain, false);
  add_method<LocalSgd>(cases, "diloco", 9, diloco, false);
  // A step of SGD, because the largest elements of zeros are not those of a gradient. Then θ, φ and e give Δ + e, of
  // which e keeps the rest; φ changes, and θ becomes φ.
  add_method<LocalSgd>(cases, "sparseloco", 3 + 7, sparse, true);
  // θ goes into a message; it, φ and m give the new φ and m; θ becomes φ. The rank is alone, so it adds no other's θ.
  add_method<NoLoCo>(cases, "noloco_alone", 8, {.local_steps = 1}, false);
  // g and d give d, and θ changes.
  add_method<DeMo>(cases, "demo", 5, {.check_every = 0}, true);
  // g and e give M, which two products read; e becomes the rest, and ĝ is written.
  add_averaging(cases, "powersgd", 7, {.exchange = "powersgd:rank=2,start=0"});
  // g is read, and the mean is written.
  add_averaging(cases, "hadamard", 2, {.codec = "hadamard:bits=2"});
  add_averaging(cases, "ternary", 2, {.codec = "ternary"});
  add_averaging(cases, "qsgd4", 2, {.codec = "qsgd:bits=4"});
  cases.push_back({"flight_record/1000_operations", 1, [] { return record_operations; }});
}

}  // namespace tern::bench
