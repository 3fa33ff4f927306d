#include "tern/trainer/flags/rules.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

using namespace trainer;

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
  EXPECT_EQ(settings.transport, "socket");
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
