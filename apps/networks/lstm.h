#pragma once

#include <cmath>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/data/an4.h"
#include "tern/layers/linear.h"
#include "tern/layers/lstm.h"
#include "tern/networks/networks.h"

namespace tern::networks {

/// A network that recognises phones: layers of LSTM with peepholes and projections (Sak, Senior and Beaufays, 2014),
/// and a linear layer. QSGD's network for AN4, from CNTK's example, has 3 layers of 1024 cells that are projected to
/// 512. First values: uniform in ±1.6/√cells, which is ±0.05 for 1024 cells. With ±1/√cells, three layers stay long at
/// the loss of a network that finds blanks only.
struct SpeechLstm final : Module {
  struct Options {
    int64_t in = An4::kFeatures, hidden = 1024, projection = 512, layers = 3;
    int64_t classes = An4::kPhones.size() + 1;  ///< the last is CTC's blank
  };
  explicit SpeechLstm(const Options& options)
      : lstm(add<Lstm>("lstm", {.in = options.in,
                                .hidden = options.hidden,
                                .projection = options.projection,
                                .layers = options.layers,
                                .peepholes = true,
                                .range = 1.6 / std::sqrt(static_cast<double>(options.hidden))})),
        out(add<Linear>("out", {.in = options.projection, .out = options.classes})) {}

  /// Logits [T, N, classes] of frames [N, T, in], of which sequence n has lengths[n], i64 [N] on the CPU.
  Variable operator()(const Variable& frames, const Tensor& lengths) {
    return run([&] { return out(lstm(transpose(frames, 0, 1), lengths).y); });
  }

  Lstm& lstm;
  Linear& out;
};

/// Phones of utterances by connectionist temporal classification: the loss of a batch is the mean over its utterances
/// of each loss divided by its number of phones. The score is the phone error rate: the insertions, deletions and
/// substitutions from the phones that the network finds to those of the transcripts, divided by the number of phones in
/// the transcripts.
class SpeechRecognition final : public TaskFor<SpeechLstm> {
 public:
  /// `count` searches with a beam, for evaluations and for the scores of training steps. 1 takes the best path.
  explicit SpeechRecognition(int64_t beam = 1) : beam_(beam) {}

  std::vector<DatasetEntry> datasets() const override;
  std::vector<Score> scores() const override { return {{.name = "phone error rate", .higher_is_better = false}}; }
  Forward loss(SpeechLstm& model, const DeviceBatch& batch) const override;
  std::vector<Ratio> count(std::span<const Tensor> outputs, const Batch& batch) const override;
  std::string sample_noun() const override { return "utterances"; }

 private:
  int64_t beam_;
};

/// The LSTM on AN4 (QSGD, table 1 and figure 3b).
const Network& lstm();

}  // namespace tern::networks
