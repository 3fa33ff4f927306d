#include "tern/dist/comm/contract.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/dist/comm/collectives.h"
#include "tern/dist/comm/failure.h"

namespace tern {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;

/// Each name and each value ends with a zero byte.
std::string pack(const Contract& contract) {
  std::string text;
  for (const auto& [name, value] : contract) {
    check((name + value).find('\0') == std::string::npos, "contract: ", name, " holds a zero byte");
    text += name + '\0' + value + '\0';
  }
  return text;
}

Contract unpack(std::string_view text) {
  Contract contract;
  const auto next = [&] {
    const std::string_view word = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    return std::string(word);
  };
  while (!text.empty()) {
    std::string name = next();
    contract.emplace_back(std::move(name), next());
  }
  return contract;
}

const std::string* find(const Contract& contract, const std::string& name) {
  const auto entry = std::ranges::find(contract, name, &Contract::value_type::first);
  return entry == contract.end() ? nullptr : &entry->second;
}

std::string describe(int rank, const std::string& name, const std::string* value) {
  const std::string said = !value ? "no " + name : name + "=" + (value->empty() ? "not given" : *value);
  return printable(join({"rank ", rank, ": ", said}));
}

/// Reports different values before missing names. A missing name often follows from a different value: `local-steps`
/// from `method`.
void compare(int rank, const Contract& theirs, const Contract& first) {
  const auto compare_names = [&](const Contract& names, bool in_both) {
    for (const auto& [name, unused] : names) {
      const std::string *a = find(theirs, name), *b = find(first, name);
      if ((a && b) == in_both && (!in_both || *a != *b))
        throw PeerError(describe(rank, name, a) + ", " + describe(0, name, b) + "; expected the same on all ranks");
    }
  };
  compare_names(first, true);
  compare_names(first, false);
  compare_names(theirs, false);
}

}  // namespace

void compare_contracts(Communicator& communicator, const Contract& contract) {
  const int size = communicator.size();
  const std::string text = pack(contract);
  const auto length = static_cast<int64_t>(text.size());
  Tensor lengths = Tensor::empty({size}, {.dtype = DType::i64});
  communicator
      .all_gather(Tensor::full({1}, static_cast<double>(length), {.dtype = DType::i64}), lengths, Account::overhead)
      .wait();
  const std::vector<int64_t> counts = lengths.to_vector<int64_t>();
  for (const int64_t count : counts)
    check(count >= 0 && count <= kMaxBytes, "contract: one is ", count, " bytes long, expected ", kMaxBytes,
          " at most");

  const detail::Cuts cuts = detail::cuts_of(counts);
  Tensor all = Tensor::empty({cuts.back()}, {.dtype = DType::u8});
  const Tensor mine = Tensor::from<uint8_t>({length}, std::vector<uint8_t>(text.begin(), text.end()));
  communicator.all_gather(mine, all, counts, Account::overhead).wait();

  const auto* bytes = static_cast<const char*>(all.raw_data());
  const auto of = [&](int rank) { return unpack({bytes + cuts[rank], static_cast<size_t>(counts[rank])}); };
  const Contract first = of(0);
  for (int rank = 1; rank < size; ++rank) compare(rank, of(rank), first);
}

}  // namespace tern
