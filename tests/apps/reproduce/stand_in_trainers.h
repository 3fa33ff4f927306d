#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/file_bytes.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace tern {

namespace fs = std::filesystem;

inline std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::istringstream text(fs::exists(file) ? read_file(file) : "");
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> words(const std::vector<std::string>& program, const std::vector<std::string>& more) {
  auto all = program;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// A shell script that replaces a training program. It notes its flags, and logs an accuracy of (9900 + 10 seed −
/// workers)/10000. If the file "hang" contains its --workers, it leaves a checkpoint and waits. If the file "fail"
/// does, it ends with code 2.
inline constexpr const char* kTrainer = R"sh(#!/bin/bash
here=$(dirname "$0")
echo "$*" >>"$here/calls"
workers=0
while [ $# -gt 0 ]; do
  case $1 in
    --seed) seed=$2 ;;
    --workers) workers=$2 ;;
    --iterations) steps=$2 ;;
    --log) log=$2 ;;
    --checkpoint) checkpoint=$2 ;;
  esac
  shift
done
if [ "$(cat "$here/fail" 2>/dev/null)" = "$workers" ]; then
  echo "train_lenet: the flags are broken" >&2
  exit 2
fi
echo '{"event":"start"}' >>"$log"
if [ "$(cat "$here/hang" 2>/dev/null)" = "$workers" ]; then
  echo '{"event":"step","step":7}' >>"$log"
  mkdir -p "$checkpoint"
  touch "$checkpoint/step-00000007.tern"
  trap 'exit 130' INT
  touch "$here/hanging"
  while :; do sleep 0.02; done
fi
printf '{"event":"done","accuracy":0.%d,"loss":0.5,"seconds":60,"steps":%d,"bytes_sent_payload":%d,"bytes_sent_overhead":9}\n' \
  $((9900 + 10 * seed - workers)) "$steps" $((1000 * workers)) >>"$log"
)sh";

/// Runs `reproduce` in a folder with scripts that replace the training programs.
class StandInTrainers : public testing::Test {
 protected:
  StandInTrainers() {
    fs::create_directory(programs_);
    fs::copy_file(built_program("reproduce"), programs_ / "reproduce");
    for (const char* program : {"train_lenet", "train_cifarnet", "train_alexnet", "train_googlenet"}) {
      write_file(programs_ / program, kTrainer);
      fs::permissions(programs_ / program, fs::perms::owner_all);
    }
  }

  std::vector<std::string> calls() const { return lines_of(programs_ / "calls"); }
  static int64_t containing(const std::vector<std::string>& lines, const std::string& part) {
    return std::ranges::count_if(lines, [&](const auto& line) { return line.find(part) != std::string::npos; });
  }

  TemporaryFolder folder_;
  const fs::path programs_ = folder_.path() / "programs";
  const fs::path results_ = folder_.path() / "the results";
};

}  // namespace tern
