#include "tern/trainer/rank/team.h"

#include <numeric>

#include "tern/dist/comm/failure.h"

namespace tern::trainer {

std::vector<double> Team::Sum::wait() const {
  if (work_) work_->wait();
  return values_.to_vector<double>();
}

Team::Sum Team::start_sum(const std::vector<double>& values) const {
  Sum sum(Tensor::from<double>({std::ssize(values)}, values));
  if (communicator_) sum.work_ = communicator_->all_reduce(sum.values_, Reduction::sum, Account::overhead);
  return sum;
}

double Team::largest(double value) const {
  Tensor most = Tensor::from<double>({1}, {value});
  if (communicator_) communicator_->all_reduce(most, Reduction::max, Account::overhead).wait();
  return most.span<double>().front();
}

std::string Team::gather(const std::string& text) const {
  if (!communicator_) return text;
  std::vector<double> lengths(static_cast<size_t>(size()));
  lengths[static_cast<size_t>(rank())] = static_cast<double>(text.size());
  const std::vector<double> sums = sum(lengths);
  const std::vector<int64_t> counts(sums.begin(), sums.end());
  const Tensor own = Tensor::from<uint8_t>({std::ssize(text)}, {text.begin(), text.end()});
  Tensor all = Tensor::empty({std::accumulate(counts.begin(), counts.end(), int64_t{0})}, {.dtype = DType::u8});
  communicator_->all_gather(own, all, counts, Account::overhead).wait();
  const auto bytes = all.span<uint8_t>();
  return {bytes.begin(), bytes.end()};
}

void Team::check_job() const {
  if (!communicator_) return;
  const JobState job = communicator_->state();
  if (!job.failure.empty()) throw PeerError(job.failure);
}

void Team::barrier() const {
  if (communicator_) communicator_->barrier().wait();
}

}  // namespace tern::trainer
