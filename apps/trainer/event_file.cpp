#include "tern/apps/trainer/event_file.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <span>
#include <system_error>

#include "tern/apps/trainer/protobuf.h"
#include "tern/core/crc32c.h"
#include "tern/core/error.h"

namespace tern {
namespace {

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2 };

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// TFRecord rotates and shifts checksums, since data that holds its own checksum is a weak spot of CRCs.
std::string masked_checksum(const std::string& bytes) {
  const uint32_t sum = crc32c(std::as_bytes(std::span(bytes)));
  return little_endian((sum >> 15 | sum << 17) + 0xa282ead8u);
}

}  // namespace

EventFile::EventFile(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check_input(!error, "--tensorboard: ", folder, ": cannot be made: ", error.message());
  const auto seconds = static_cast<int64_t>(wall_time());
  path_ = join({folder, "/events.out.tfevents.", seconds, '.', host_name(), '.', getpid()});
  file_.open(path_, std::ios::binary);
  check_input(file_.good(), "--tensorboard: ", path_, ": cannot be written");
  write_record(ProtobufMessage().number(kWallTime, wall_time()).bytes(kFileVersion, "brain.Event:2").text());
}

void EventFile::stepped(const StepReport& report) {
  add_scalar("train/loss", report.step, report.loss);
  add_scalar("train/lr", report.step, report.lr);
}

void EventFile::evaluated(const EvaluationReport& report) {
  add_scalar("eval/accuracy", report.step, report.accuracy);
  add_scalar("eval/loss", report.step, report.loss);
}

void EventFile::add_scalar(std::string_view tag, int64_t step, double value) {
  const auto scalar = ProtobufMessage().bytes(kTag, tag).number(kSimpleValue, static_cast<float>(value));
  const auto summary = ProtobufMessage().bytes(kValue, scalar.text());
  write_record(
      ProtobufMessage().number(kWallTime, wall_time()).integer(kStep, step).bytes(kSummary, summary.text()).text());
}

void EventFile::write_record(const std::string& message) {
  const std::string length = little_endian(uint64_t{message.size()});
  file_ << length << masked_checksum(length) << message << masked_checksum(message) << std::flush;
  check_input(file_.good(), "--tensorboard: ", path_, ": cannot be written");
}

}  // namespace tern
