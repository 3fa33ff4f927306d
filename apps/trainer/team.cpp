#include "tern/apps/trainer/team.h"

namespace tern {

std::vector<double> Team::Sum::wait() const {
  if (work_) work_->wait();
  return values_.to_vector<double>();
}

Team::Sum Team::start_sum(const std::vector<double>& values) const {
  Sum sum(Tensor::from<double>({std::ssize(values)}, values));
  if (communicator_) sum.work_ = communicator_->all_reduce(sum.values_, Reduction::sum, Account::overhead);
  return sum;
}

void Team::barrier() const {
  if (communicator_) communicator_->barrier().wait();
}

}  // namespace tern
