#include "tern/core/device.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

TEST(Device, ReadsWhatItWrites) {
  for (const Device device : {Device{}, Device{DeviceType::cuda, 0}, Device{DeviceType::cuda, 3}})
    EXPECT_EQ(parse_device(to_string(device)), device);
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::cuda, 0}));
}

TEST(Device, RefusesAnythingElse) {
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda:99", "cpu:0", "CPU"})
    EXPECT_EQ(message_of<InputError>([&] { parse_device(text); }),
              std::string("device '") + text + "': expected cpu, cuda or cuda:N");
}

TEST(Device, SaysWhichOneIsMissing) {
  const std::string message = message_of<InputError>([] { device_backend({DeviceType::cuda, 15}); });
  EXPECT_TRUE(message.starts_with("device cuda:15: ")) << message;
}

}  // namespace
}  // namespace tern
