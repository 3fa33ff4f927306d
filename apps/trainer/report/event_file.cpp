#include "tern/trainer/report/event_file.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/core/program.h"

namespace tern::trainer {
namespace {

/// Builds a protocol-buffer message in wire format, field by field. A value.
class ProtobufMessage {
 public:
  ProtobufMessage& integer(int field, int64_t value);
  ProtobufMessage& number(int field, double value);
  ProtobufMessage& number(int field, float value);
  /// A string, bytes, or an embedded message.
  ProtobufMessage& bytes(int field, std::string_view value);

  const std::string& text() const { return text_; }

 private:
  void varint(uint64_t value);
  void key(int field, int wire_type) { varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type)); }

  std::string text_;
};

/// The bytes of `word`, least significant first.
template <class Word>
std::string little_endian(Word word) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(Word); ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
  return bytes;
}

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void ProtobufMessage::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

ProtobufMessage& ProtobufMessage::integer(int field, int64_t value) {
  key(field, kVarint);
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::number(int field, double value) {
  key(field, kFixed64);
  text_ += little_endian(std::bit_cast<uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::number(int field, float value) {
  key(field, kFixed32);
  text_ += little_endian(std::bit_cast<uint32_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::bytes(int field, std::string_view value) {
  key(field, kBytes);
  varint(value.size());
  text_ += value;
  return *this;
}

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2, kHisto = 5 };
enum HistogramField { kMin = 1, kMax = 2, kNum = 3, kSum = 4, kSumSquares = 5, kBucketLimit = 6, kBucket = 7 };

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// TFRecord rotates checksums and adds a constant, because a CRC is weak for data that contain their own CRC.
std::string masked_checksum(const std::string& bytes) {
  const uint32_t sum = crc32c(std::as_bytes(std::span(bytes)));
  return little_endian((sum >> 15 | sum << 17) + 0xa282ead8u);
}

}  // namespace

EventFile::EventFile(const std::string& folder) : file_(nullptr, &std::fclose) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check_input(!error, "--tensorboard: ", folder, ": cannot be made: ", error.message());
  const auto seconds = static_cast<int64_t>(wall_time());
  path_ = join({folder, "/events.out.tfevents.", seconds, '.', host_name(), '.', getpid()});
  file_.reset(std::fopen(path_.c_str(), "we"));
  check_written(file_ != nullptr);
  write_record(ProtobufMessage().number(kWallTime, wall_time()).bytes(kFileVersion, "brain.Event:2").text());
}

void EventFile::started(const RunStart& run) {
  scores_ = run.scores;
  team_ = run.settings.workers.has_value();
}

void EventFile::stepped(const StepReport& report) {
  add_scalar("train/loss", report.step, report.loss);
  add_scalar("train/lr", report.step, report.lr);
  if (report.gradient_norm) add_scalar("train/gradient_norm", report.step, *report.gradient_norm);
  if (!team_) return;
  add_scalar("exchange/bytes_sent_payload", report.step, static_cast<double>(report.traffic.sent_payload));
  add_scalar("exchange/bytes_sent_overhead", report.step, static_cast<double>(report.traffic.sent_overhead));
  add_scalar("exchange/encode_seconds", report.step, report.times.encode);
  add_scalar("exchange/wait_seconds", report.step, report.times.wait);
  add_scalar("exchange/decode_seconds", report.step, report.times.decode);
}

void EventFile::counted(const HistogramReport& report) {
  for (const auto& [name, histogram] : report.weights) add_histogram("weights/" + name, report.step, histogram);
  for (const auto& [name, histogram] : report.gradients) add_histogram("gradients/" + name, report.step, histogram);
}

void EventFile::evaluated(const EvaluationReport& report) {
  for (size_t i = 0; i < report.scores.size(); ++i)
    add_scalar("eval/" + scores_[i].key(), report.step, report.scores[i]);
  add_scalar("eval/loss", report.step, report.loss);
}

void EventFile::checkpointing() { check_written(::fdatasync(::fileno(file_.get())) == 0); }

void EventFile::add_scalar(std::string_view tag, int64_t step, double value) {
  write_value(step, ProtobufMessage().bytes(kTag, tag).number(kSimpleValue, static_cast<float>(value)).text());
}

void EventFile::add_histogram(std::string_view tag, int64_t step, const Histogram& histogram) {
  std::string limits, counts;  // packed repeated doubles: the upper end of each interval, and its count
  const auto intervals = static_cast<double>(histogram.counts.size());
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const bool last = i + 1 == histogram.counts.size();
    const double share = static_cast<double>(i + 1) / intervals;
    const double limit = last ? histogram.high : histogram.low + share * (histogram.high - histogram.low);
    limits += little_endian(std::bit_cast<uint64_t>(limit));
    counts += little_endian(std::bit_cast<uint64_t>(static_cast<double>(histogram.counts[i])));
  }
  const auto message = ProtobufMessage()
                           .number(kMin, histogram.low)
                           .number(kMax, histogram.high)
                           .number(kNum, static_cast<double>(histogram.finite))
                           .number(kSum, histogram.sum)
                           .number(kSumSquares, histogram.squares)
                           .bytes(kBucketLimit, limits)
                           .bytes(kBucket, counts);
  write_value(step, ProtobufMessage().bytes(kTag, tag).bytes(kHisto, message.text()).text());
}

void EventFile::write_value(int64_t step, const std::string& value) {
  const auto summary = ProtobufMessage().bytes(kValue, value);
  write_record(
      ProtobufMessage().number(kWallTime, wall_time()).integer(kStep, step).bytes(kSummary, summary.text()).text());
}

void EventFile::write_record(const std::string& message) {
  const std::string length = little_endian(uint64_t{message.size()});
  const std::string record = length + masked_checksum(length) + message + masked_checksum(message);
  check_written(std::fwrite(record.data(), 1, record.size(), file_.get()) == record.size() &&
                std::fflush(file_.get()) == 0);
}

void EventFile::check_written(bool written) const {
  check_input(written, "--tensorboard: ", path_, ": cannot be written: ", std::strerror(errno));
}

}  // namespace tern::trainer
