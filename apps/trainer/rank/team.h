#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tern/dist/comm/communicator.h"

namespace tern::trainer {

/// One rank among all ranks of a run. Exchanges a few numbers besides the messages of the training method; they count
/// as overhead. Without a communicator, the rank is alone. Used by the rank's training thread.
class Team {
 public:
  /// The caller owns `communicator`, which must outlive the team; null if there is only one rank.
  explicit Team(Communicator* communicator) : communicator_(communicator) {}

  int rank() const { return communicator_ ? communicator_->rank() : 0; }
  int size() const { return communicator_ ? communicator_->size() : 1; }
  /// Whether this is rank 0. It alone writes the files of a run, except that each rank writes its part of a checkpoint.
  bool leads() const { return rank() == 0; }

  /// A sum over all ranks that is in progress.
  class Sum {
   public:
    std::vector<double> wait() const;

   private:
    friend class Team;
    explicit Sum(Tensor values) : values_(std::move(values)) {}

    Tensor values_;
    std::optional<Work> work_;
  };
  /// Starts to sum `values` over all ranks, in f64. All ranks pass the same number of values and get the same sums.
  Sum start_sum(const std::vector<double>& values) const;
  std::vector<double> sum(const std::vector<double>& values) const { return start_sum(values).wait(); }
  /// The largest of the ranks' values.
  double largest(double value) const;
  /// The `text` of all ranks, in rank order. The lengths may differ.
  std::string gather(const std::string& text) const;
  /// Returns after every rank has called it.
  void barrier() const;
  /// Throws PeerError if the job has failed, for example because a rank was lost. Sends nothing.
  void check_job() const;
  /// See Communicator::confirm.
  void confirm() const {
    if (communicator_) communicator_->confirm();
  }

  /// What this rank has sent so far.
  Traffic traffic() const { return communicator_ ? communicator_->traffic() : Traffic{}; }

 private:
  Communicator* communicator_;
};

}  // namespace tern::trainer
