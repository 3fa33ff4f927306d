#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tern/dist/comm/transport.h"

namespace tern::detail {

/// A transport that owns another one and passes everything on to it. A derived class changes some of it.
class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void send(int peer, const Message& message, std::span<const std::byte> bytes, Clock::time_point due) override {
    inner_->send(peer, message, bytes, due);
  }
  Clock::time_point receive(int peer, const Message& message, std::span<std::byte> bytes) override {
    return inner_->receive(peer, message, bytes);
  }
  void flush() override { inner_->flush(); }
  void idle_until(Clock::time_point time) override { inner_->idle_until(time); }
  Traffic traffic() const override { return inner_->traffic(); }
  JobState state() const override { return inner_->state(); }
  void reach(const Message& message) override { inner_->reach(message); }
  void throw_if_failed() override { inner_->throw_if_failed(); }
  void fail(const std::string& cause) override { inner_->fail(cause); }

 protected:
  Transport& inner() { return *inner_; }

 private:
  std::unique_ptr<Transport> inner_;
};

}  // namespace tern::detail
