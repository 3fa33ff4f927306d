#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tern/data/generated.h"
#include "tests/support/file_bytes.h"
#include "tests/support/log.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace tern {

/// Writes an IDX file in its canonical form: magic, extents, bytes.
inline void write_idx(const std::string& path, const std::vector<uint32_t>& extents, const std::string& values) {
  std::string bytes = {0, 0, 8, static_cast<char>(extents.size())};
  for (const uint32_t extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift & 0xff);
  write_file(path, bytes + values);
}

/// Runs train_lenet on a small data set in the format of MNIST, so that a run is short.
class TrainLenet : public testing::Test {
 protected:
  static constexpr uint32_t kTraining = 200, kTest = 50;  // batches of 16: 12 steps an epoch

  TrainLenet() {
    std::filesystem::create_directory(data_);
    write_images("train", Split::train, kTraining);
    write_images("t10k", Split::test, kTest);
  }

  std::string place(const std::string& name) const { return (folder_.path() / name).string(); }

  std::vector<std::string> words(const std::vector<std::string>& more) const {
    const bool trains = !std::ranges::count(more, "--eval-only") && !std::ranges::count(more, "--predict");
    const bool sets_batch = std::ranges::count(more, "--local-batch-size") > 0;
    auto all = over({"--data", "mnist", "--data-dir", data_.string(), "--threads", "1", "--variant", "caffe"},
                    trains && !sets_batch ? over({"--batch-size", "16"}, more) : more);
    all.insert(all.begin(), built_program("train_lenet"));
    return all;
  }
  /// The flags of `defaults`, each with a value, that `more` does not contain. Then all of `more`.
  static std::vector<std::string> over(const std::vector<std::string>& defaults, const std::vector<std::string>& more) {
    std::vector<std::string> all;
    for (size_t i = 0; i < defaults.size(); i += 2)
      if (!std::ranges::count(more, defaults[i])) all.insert(all.end(), {defaults[i], defaults[i + 1]});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome run(const std::vector<std::string>& more) const { return run_program(words(more)); }

  /// The loss of every step. If the log has a step twice, the later loss counts.
  static std::map<int64_t, double> losses(const std::string& log) {
    std::map<int64_t, double> found;
    for (const auto& event : read_log(log))
      if (event["event"] == "step") found[event["step"]] = event["loss"];
    return found;
  }
  /// Trains with a new log, expects success, and returns the losses.
  std::map<int64_t, double> train(std::vector<std::string> more) const {
    const std::string log = place("train.jsonl");
    more.insert(more.end(), {"--log", log, "--quiet"});
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return losses(log);
  }

  /// Returns as soon as a program has written so many lines to its log.
  static void wait_for_lines(const std::string& log, size_t lines) {
    for (int i = 0; i < 3000; ++i) {
      const std::string text = std::filesystem::exists(log) ? read_file(log) : "";
      if (static_cast<size_t>(std::ranges::count(text, '\n')) >= lines) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    FAIL() << "the log never had " << lines << " lines";
  }

  TemporaryFolder folder_;
  const std::filesystem::path data_ = folder_.path() / "data";

 private:
  void write_images(const std::string& stem, Split split, uint32_t count) const {
    constexpr size_t kPixels = kDigitSide * kDigitSide;
    std::vector<uint8_t> image(kPixels);
    std::string pixels, labels;
    for (uint32_t i = 0; i < count; ++i) {
      labels += static_cast<char>(draw_digit(7, split, i, image));
      pixels.append(image.begin(), image.end());
    }
    write_idx((data_ / (stem + "-images-idx3-ubyte")).string(), {count, 28, 28}, pixels);
    write_idx((data_ / (stem + "-labels-idx1-ubyte")).string(), {count}, labels);
  }
};

}  // namespace tern
