#include "tern/trainer/rank/machine.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

namespace tern::trainer {
namespace {

TEST(ProcessorIdentity, HasTheNumbersOfTheFirstCore) {
  EXPECT_EQ(processor_identity("processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\n"
                               "processor\t: 1\ncpu family\t: 26\n"),
            "AMD EPYC, cpu family 25, model 17");
}

TEST(ProcessorIdentity, TellsArmProcessorsApart) {
  utsname system = {};
  uname(&system);
  EXPECT_EQ(processor_identity("processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n"
                               "CPU part\t: 0xd0c\nCPU revision\t: 1\n"),
            std::string(system.machine) + ", CPU implementer 0x41, CPU part 0xd0c");
}

}  // namespace
}  // namespace tern::trainer
