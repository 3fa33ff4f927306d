#include <fmt/format.h>

#include <algorithm>

#include "tern/core/error.h"
#include "tern/dist/exchange/table.h"

namespace tern {
namespace {

std::string names_of_takers(const GradientCodec& codec) {
  std::vector<std::string_view> names;
  for (const ExchangeEntry* entry : exchange_table())
    if (entry->valid(codec)) names.emplace_back(entry->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const ExchangeEntry* find(std::string_view name) {
  const auto found =
      std::ranges::find_if(exchange_table(), [&](const ExchangeEntry* entry) { return name == entry->name; });
  return found == exchange_table().end() ? nullptr : *found;
}

struct CheckedExchange {
  const ExchangeEntry& entry;
  SpecParameters options;
};

/// The exchange of `spec`, with its parameters. Does the work of `check_exchange`.
CheckedExchange checked(std::string_view spec, const GradientCodec& codec) {
  const SpecParts parts(spec);
  const ExchangeEntry* entry = find(parts.name);
  check_input(entry != nullptr, "no exchange '", parts.name, "'; there are ",
              fmt::format("{}", fmt::join(exchange_names(), ", ")));
  check_input(entry->valid(codec), "exchange ", parts.name, " takes ", entry->takes, ", not ", codec.spec(),
              "; expected ", names_of_takers(codec), " for this codec");
  CheckedExchange exchange = {*entry, SpecParameters("exchange", parts)};
  if (entry->parameters != nullptr) entry->plan(codec, {}, 1, exchange.options);  // it asks for the parameters
  exchange.options.finish();
  return exchange;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

}  // namespace

MeansToCome Exchange::start(FusedGradients message) {
  if (!runs_on_devices()) {
    const Stopwatch encoding(times_.encode);
    for (TaggedGradient& tagged : message) tagged.gradient = tagged.gradient.to(Device{});
  }
  return begin(std::move(message));
}

MeansToCome Exchange::start(FusedGradients message, std::vector<Tensor> minus) {
  check(minus.size() == message.size(), "exchange: ", minus.size(), " tensors to subtract from ", message.size(),
        " gradients, expected one each");
  if (runs_on_devices()) return begin_difference(std::move(message), std::move(minus));
  return start(computed(std::move(message), minus));
}

MeansToCome Exchange::begin_difference(FusedGradients message, std::vector<Tensor> minus) {
  return begin(computed(std::move(message), minus));
}

FusedGradients Exchange::computed(FusedGradients message, std::span<const Tensor> minus) {
  const Stopwatch encoding(times_.encode);
  return differences(std::move(message), minus);
}

void Exchange::load_state(const StateDict& state) {
  check_input(state.size() == 0, "exchange: found state of '", state.size() == 0 ? "" : state.begin()->first,
              "', expected none, because the exchange keeps nothing");
}

void Exchange::wait(const Work& work) {
  const Stopwatch waiting(times_.wait);
  work.wait();
}

std::span<const ExchangeEntry* const> exchange_table() {
  static constexpr const ExchangeEntry* kTable[] = {&ring_entry,           &allgather_entry, &allgather_sent_entry,
                                                    &reduce_scatter_entry, &server_entry,    &ternary_ring_entry,
                                                    &power_sgd_entry};
  return kTable;
}

void check_exchange(std::string_view spec, const GradientCodec& codec) { checked(spec, codec); }

std::unique_ptr<Exchange> make_exchange(std::string_view spec, GradientCodec& codec, Communicator& communicator) {
  CheckedExchange exchange = checked(spec, codec);
  return exchange.entry.make(codec, communicator, exchange.options);
}

ExchangePlan plan_exchange(std::string_view spec, const GradientCodec& codec, std::span<const CodedTensor> message,
                           int ranks) {
  CheckedExchange exchange = checked(spec, codec);
  return exchange.entry.plan(codec, message, ranks, exchange.options);
}

std::string default_exchange(const GradientCodec& codec, int ranks) {
  if (ring_entry.valid(codec)) return ring_entry.name;
  if (ranks * codec.traits().bits < 64) return allgather_entry.name;
  if (ternary_ring_entry.valid(codec)) return ternary_ring_entry.name;  // sums of codes travel in few bits
  return reduce_scatter_entry.valid(codec) ? reduce_scatter_entry.name : allgather_entry.name;
}

std::vector<std::string> exchange_names() {
  std::vector<std::string> names;
  for (const ExchangeEntry* entry : exchange_table()) names.emplace_back(entry->name);
  return names;
}

std::string exchange_help(std::span<const CodecEntry> own) {
  constexpr size_t kExchange = 16, kCodec = 9, kGap = 2;
  std::string help = "Exchanges, and the bytes that each rank sends for n elements of b bits on N ranks:\n";
  for (const ExchangeEntry* entry : exchange_table())
    help += join({"\n", entry->name, "\n  takes  ", entry->takes, "\n  bytes  ", entry->bytes, "\n"}) +
            (entry->parameters == nullptr ? "" : join({"  parameters  ", entry->parameters, "\n"}));
  const auto row = [&](std::string_view name, const auto& cell) {
    help += join({"\n", padded(std::string(name), kExchange)});
    for (const std::string& codec : codec_names(own))
      help += padded(cell(codec), std::max(kCodec, codec.size() + kGap));
    help.erase(help.find_last_not_of(' ') + 1);
  };
  row("", [](const std::string& codec) { return codec; });
  for (const ExchangeEntry* entry : exchange_table())
    row(entry->name, [&](const std::string& codec) { return entry->valid(*make_codec(codec, own)) ? "yes" : "-"; });
  help +=
      "\n\nWithout --exchange: ring for none, fp16 and bf16. For other codecs allgather if N b < 64. Otherwise "
      "ternary-ring\nor reduce-scatter for codecs that they take.";
  return help + "\n\nExchanges for error-feedback:CODEC: " + names_of_takers(*make_codec("error-feedback:ternary")) +
         "; of topk, topk-block and randk also allgather-sent\n";
}

}  // namespace tern
