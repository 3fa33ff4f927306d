#include "tern/apps/reproduce/qsvrg.h"

#include <utility>

#include "tern/core/random.h"

namespace tern {

Qsvrg::Qsvrg(const LinearProblem& problem, Vector start, const QsvrgOptions& options)
    : problem_(problem),
      options_(options),
      floats_(make_codec("none")),
      codec_(make_codec(options.codec)),
      y_(std::move(start)) {}

/// A processor's broadcast: coded, counted, and added up as every peer decodes it.
void Qsvrg::add_message(GradientCodec& codec, const GradientTag& tag, const Vector& gradient, Tensor& sum) {
  std::vector<std::byte> message;
  codec.encode(tag, Tensor::from<double>(sum.shape(), gradient).to(DType::f32), message);
  codec.decode_add(tag, message, sum);
  bits_ += 8 * static_cast<double>(message.size());
}

/// ∇f(y) = Σ ∇h_i(y), h_i the functions of processor i.
Qsvrg::Vector Qsvrg::full_gradient() {
  const int64_t m = problem_.functions(), processors = options_.processors;
  Tensor sum = Tensor::zeros({problem_.dimensions()});
  for (int64_t i = 0; i < processors; ++i)
    add_message(*floats_, {.name = "gradient", .key = {}},
                problem_.gradient(y_, i * m / processors, (i + 1) * m / processors), sum);
  return sum.to_vector<double>();
}

double Qsvrg::run_epoch() {
  const RandomStream choice({.seed = options_.seed, .purpose = Purpose::shuffle});
  const auto processors = static_cast<uint32_t>(options_.processors);
  bits_ = 0;
  const Vector full = full_gradient();
  Vector x = y_, mean(y_.size());
  for (int64_t t = 0; t < options_.steps; ++t, ++step_) {
    for (size_t e = 0; e < x.size(); ++e) mean[e] += x[e] / static_cast<double>(options_.steps);
    Tensor sum = Tensor::zeros({problem_.dimensions()});
    for (uint32_t i = 0; i < processors; ++i) {
      const int64_t j = choice.below(uint64_t{step_} * processors + i, static_cast<uint32_t>(problem_.functions()));
      Vector update = full;
      problem_.add_gradient(j, x, 1, update);
      problem_.add_gradient(j, y_, -1, update);
      const RandomKey key = {.seed = options_.seed, .purpose = Purpose::codec, .owner = i, .step = step_};
      add_message(*codec_, {.name = "update", .key = key}, update, sum);
    }
    for (size_t e = 0; e < x.size(); ++e) x[e] -= options_.rate * sum.data<float>()[e] / processors;
  }
  y_ = mean;
  return bits_ / processors;
}

double qsvrg_bits_bound(double n, double steps) { return (32 + 2.8 * n) * (steps + 1) + 32 * n; }

}  // namespace tern
