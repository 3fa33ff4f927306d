#include "tern/dist/cost/subnet_round.h"

#include <atomic>

#include "tests/dist/methods/subnet_job.h"

namespace tern::test {
namespace {

struct Job {
  int ranks;
  SubnetExchange exchange;
  SubnetMomentum momentum;
};

TEST(SubnetRound, SendsWhatTheLedgerOfARoundHas) {
  using enum SubnetExchange;
  using enum SubnetMomentum;
  for (const Job& job : {Job{1, coordinator, travel}, Job{2, coordinator, travel}, Job{4, coordinator, travel},
                         Job{4, coordinator, drop}, Job{1, peer, drop}, Job{2, peer, travel}, Job{4, peer, travel},
                         Job{4, peer, drop}}) {
    std::atomic<uint64_t> sent = 0, sent_by_first = 0;
    on_all(job.ranks, [&](Communicator& c) {
      SubnetTrainer trainer(c,
                            {.local_steps = 2, .exchange = job.exchange, .momentum = job.momentum, .check_every = 0});
      trainer.train(0, 2);
      sent += c.traffic().sent_payload;
      if (c.rank() == 0) sent_by_first = c.traffic().sent_payload;
      return Values();
    });
    networks::Mlp model(SubnetTrainer::shape());
    model.initialize(1);
    Sgd local(model.parameters(), {.lr = 0.1, .momentum = 0.9});
    const SubnetCuts cuts(model.subnet_plan(SubnetScope::fc), model);
    const StateDict travels = job.momentum == travel ? local.state() : StateDict();
    const ExchangePlan plan =
        plan_subnet_round(cuts, model.state(), travels, {.exchange = job.exchange, .ranks = job.ranks});
    EXPECT_EQ(plan.sent(), static_cast<int64_t>(sent)) << job.ranks;
    EXPECT_NEAR(plan.sent_by_first(), static_cast<double>(sent_by_first), 0.05 * static_cast<double>(sent_by_first));
  }
}

std::vector<Operation> operations_of_a_round(const IndependentSubnets::Options& options) {
  std::vector<Operation> operations;
  on_all(4, [&](Communicator& c) {
    SubnetTrainer trainer(c, options);
    trainer.train(0, options.local_steps);
    if (c.rank() == 0)
      for (const OperationRecord& record : c.flight_record().operations) operations.push_back(record.message.operation);
    return Values();
  });
  return operations;
}

// Ranks know the sizes of codes of a fixed size. They tell them to each other before codes whose size varies: these
// travel only to the ranks that keep the model.
TEST(SubnetRound, HasTheOperationsOfItsPlan) {
  using enum Operation;
  const std::vector<Operation> planned = {all_to_all, all_to_all, all_reduce_sum, all_reduce_max},
                               with_sizes = {all_to_all, all_to_all, all_to_all, all_reduce_sum, all_reduce_max};
  for (const char* codec : {"none", "qsgd:bits=4", "ternary"})
    EXPECT_EQ(operations_of_a_round({.local_steps = 2, .check_every = 0, .codec = codec}), planned) << codec;
  EXPECT_EQ(operations_of_a_round({.local_steps = 2, .check_every = 0, .download = SubnetDownload::bf16}), planned);
  EXPECT_EQ(operations_of_a_round({.local_steps = 2, .check_every = 0, .codec = "qsgd:code=entropy"}), with_sizes);

  networks::Mlp model(SubnetTrainer::shape());
  model.initialize(1);
  const ExchangePlan plan =
      plan_subnet_round({model.subnet_plan(SubnetScope::fc), model}, model.state(), {}, {.ranks = 4});
  std::vector<int64_t> hops;
  for (const ExchangePhase& phase : plan.phases) hops.push_back(phase.wire.hops);
  EXPECT_EQ(hops, std::vector<int64_t>(planned.size(), 1));
}

}  // namespace
}  // namespace tern::test
