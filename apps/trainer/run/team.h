#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tern/dist/comm/communicator.h"

namespace tern::trainer {

/// One rank among all ranks of a run, and what they tell each other beside the messages of the training method: a few
/// numbers, on the overhead account. Alone where there is no communicator. Used by the rank's training thread.
class Team {
 public:
  /// `communicator` belongs to the caller and outlives the team.
  explicit Team(Communicator* communicator) : communicator_(communicator) {}

  int rank() const { return communicator_ ? communicator_->rank() : 0; }
  int size() const { return communicator_ ? communicator_->size() : 1; }
  /// Whether this rank speaks for all: it alone writes the files of a run.
  bool leads() const { return rank() == 0; }

  /// Numbers that are being summed over all ranks.
  class Sum {
   public:
    std::vector<double> wait() const;

   private:
    friend class Team;
    explicit Sum(Tensor values) : values_(std::move(values)) {}

    Tensor values_;
    std::optional<Work> work_;
  };
  /// As many `values` on every rank; the same sums, in f64, on all.
  Sum start_sum(const std::vector<double>& values) const;
  std::vector<double> sum(const std::vector<double>& values) const { return start_sum(values).wait(); }
  /// All ranks' `text`, of any lengths, one after the other.
  std::string gather(const std::string& text) const;
  /// Returns once every rank has called it.
  void barrier() const;

  /// What this rank has moved so far.
  Traffic traffic() const { return communicator_ ? communicator_->traffic() : Traffic{}; }

 private:
  Communicator* communicator_;
};

}  // namespace tern::trainer
