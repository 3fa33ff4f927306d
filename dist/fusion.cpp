#include "tern/dist/fusion.h"

#include <fnmatch.h>

#include <algorithm>

#include "tern/core/error.h"

namespace tern {
namespace {

bool matches(const AveragedTensor& tensor, const std::string& pattern) {
  return !pattern.empty() && fnmatch(pattern.c_str(), tensor.name.c_str(), 0) == 0;
}

}  // namespace

std::vector<FusedMessage> fuse(const std::vector<AveragedTensor>& tensors, const FusionOptions& options) {
  const std::string& kept = options.keep_float;
  check_input(kept.empty() || std::ranges::any_of(tensors, [&](const auto& tensor) { return matches(tensor, kept); }),
              "keep-float '", kept, "' matches none of the model's parameters; the last is '",
              tensors.empty() ? "" : tensors.back().name, "'");
  std::vector<FusedMessage> messages;
  FusedMessage open[2] = {{{}, false}, {{}, true}};
  int64_t bytes[2] = {};
  const auto close = [&](bool coded) {
    if (!open[coded].members.empty()) messages.push_back(open[coded]);
    open[coded].members.clear();
    bytes[coded] = 0;
  };
  for (size_t i = tensors.size(); i-- > 0;) {
    const AveragedTensor& tensor = tensors[i];
    const bool coded = tensor.coded && tensor.elements >= options.min_compress && !matches(tensor, kept);
    open[coded].members.push_back(i);
    bytes[coded] += 4 * tensor.elements;
    if (bytes[coded] >= options.fusion_bytes) close(coded);
  }
  close(true);
  close(false);
  return messages;
}

}  // namespace tern
