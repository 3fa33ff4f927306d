#include "tern/trainer/flags/rules.h"

#include <gtest/gtest.h>

#include <set>
#include <type_traits>

#include "tern/core/error.h"
#include "tern/trainer/flags/words.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

using namespace trainer;

TEST(Flags, HaveANameEachAndADefaultThatIsAllowed) {
  std::set<std::string> names;
  const TrainSettings settings;
  visit_flags(settings,
              [&](const Flag& flag, const auto&) { EXPECT_TRUE(names.insert(flag.name).second) << flag.name; });
  EXPECT_GT(names.size(), 50);
  validate(settings);
}

TEST(Flags, ReadBackWhatTheyWrite) {
  TrainSettings settings;
  settings.optimizer = UpdateRule::adamw;
  settings.transport = RankTransport::nccl;
  settings.lr_steps = {0.5, 0.75};
  settings.ist_momentum = SubnetMomentum::travel;
  visit_flags(settings, [](const Flag& flag, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (Worded<Field> || std::is_arithmetic_v<Field>)
      if constexpr (!std::is_same_v<Field, bool>) {
        Field again = {};
        read_value({show_value(field)}, again);
        EXPECT_EQ(again, field) << flag.name;
      }
  });
  EXPECT_EQ(write_value(settings.transport), "\"nccl\"");
  EXPECT_EQ(write_value(std::optional<RankTransport>()), "");
  EXPECT_EQ(message_of<InputError>([&] { read_value({"adamx"}, settings.optimizer); }),
            "found 'adamx', expected sgd|momentum|nesterov|adam|adamw|muon");
}

TEST(Flags, ActWhereWhatTheyNeedIsGiven) {
  TrainSettings settings;
  EXPECT_FALSE(acts(settings, &TrainSettings::local_steps));
  settings.workers = 2;
  EXPECT_FALSE(acts(settings, &TrainSettings::local_steps));
  settings.method = TrainingMethod::local_sgd;
  EXPECT_TRUE(acts(settings, &TrainSettings::local_steps));
  EXPECT_FALSE(acts(settings, &TrainSettings::bind)) << "ranks are threads";
  settings.eval_only = true;
  EXPECT_FALSE(acts(settings, &TrainSettings::local_steps));
  EXPECT_TRUE(acts(settings, &TrainSettings::log));
}

TEST(Flags, RecordNoStepsThatALateExchangeCopiesBeside) {
  TrainSettings settings;
  settings.device = "cuda";
  settings.workers = 2;
  settings.method = TrainingMethod::diloco;
  for (const auto transport : {RankTransport::socket, RankTransport::mpi, RankTransport::nccl}) {
    settings.transport = transport;
    settings.delay = 0;
    EXPECT_TRUE(acts(settings, &TrainSettings::cuda_graph)) << show_value(settings.transport);
    settings.delay = 1;
    EXPECT_EQ(acts(settings, &TrainSettings::cuda_graph), transport == RankTransport::nccl)
        << show_value(settings.transport);
  }
  settings.workers.reset();
  EXPECT_TRUE(acts(settings, &TrainSettings::cuda_graph)) << "a rank alone sends nothing";
}

TEST(Flags, OfWorkersAreLookedAtOnlyIfThereAreAny) {
  TrainSettings settings;
  settings.local_steps = 0;
  validate(settings);
  settings.workers = 2;
  EXPECT_EQ(message_of<InputError>([&] { validate(settings); }), "--local-steps: found 0, expected 1 or more");
}

TEST(PlaceByFlags, MeetsOnTheLoopback) {
  TrainSettings settings;
  EXPECT_FALSE(place_by_flags(settings));
  settings.rank = 1;
  settings.world_size = 3;
  settings.master = "127.0.0.1:4321";
  const auto place = place_by_flags(settings);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->size, 3);
  EXPECT_EQ(place->local_size, 3);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->master.port, 4321);
  settings.master.clear();
  EXPECT_NE(message_of<InputError>([&] { place_by_flags(settings); }).find("--master"), std::string::npos);
}

ClusterPlace one_of_four(int local_size) {
  ClusterPlace place;
  place.size = 4;
  place.local_size = local_size;
  place.source = "torchrun";
  return place;
}

TEST(Settle, TakesThePlaceIntoTheSettings) {
  TrainSettings settings;
  settle(settings, one_of_four(1));
  EXPECT_EQ(settings.workers, 4);
  EXPECT_EQ(settings.transport, RankTransport::socket);
  settings.workers = 2;
  EXPECT_NE(message_of<InputError>([&] { settle(settings, one_of_four(1)); }).find("expected 4"), std::string::npos);
}

TEST(Settle, RefusesALinkBetweenMachines) {
  TrainSettings settings;
  settings.link = "rate=1gbit";
  settle(settings, one_of_four(4));
  const std::string refusal = message_of<InputError>([&] { settle(settings, one_of_four(2)); });
  EXPECT_NE(refusal.find("found 2 of 4 ranks here"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace tern
