#include <limits>
#include <map>
#include <memory>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/table.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/orthonormal.h"

namespace tern {
namespace {

struct PowerSgdOptions {
  int64_t rank = 2;   ///< k
  int64_t start = 0;  ///< the first steps, which send floats

  explicit PowerSgdOptions(SpecParameters& options)
      : rank(options.integer("rank", 2, 1, 1024)), start(options.integer("start", 0, 0, int64_t{1} << 31)) {}
};

/// The sides of a gradient as a matrix: [n0, n1], for filters [out, in·kh·kw].
struct MatrixSides {
  int64_t n0 = 0, n1 = 0;

  explicit MatrixSides(const Shape& shape) {
    if (shape.rank() < 2 || shape.numel() == 0) return;
    n0 = shape[0];
    n1 = shape.numel() / n0;
  }
  /// Whether it pays to send a product of [n0, k] and [k, n1]: it must save half of the floats.
  bool is_sent_as_product(int64_t k) const { return n0 > 0 && 2 * k * (n0 + n1) <= n0 * n1; }
};

Tensor product(const Tensor& a, const Tensor& b, const kernels::MatmulOptions& options, const Shape& shape) {
  Tensor y = Tensor::empty(shape, a.options());
  kernels::matmul(a, b, options, y);
  return y;
}

/// While it lives, this thread computes alone.
class Alone {
 public:
  Alone() { set_thread_count(1); }
  ~Alone() { set_thread_count(threads_); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  int threads_ = thread_count();
};

/// PowerSGD (Vogels et al., arXiv 1905.13727, algorithms 1 and 2; as epfml/powersgd's paper code and PyTorch's hook).
/// The ranks' matrices M = gradient + error become the product of two narrow ones, by one step of power iteration that
/// goes on from the last step's Q:
///
///   P = orthonormal columns of mean(M Q);  Q ← mean(MᵀP);  the mean gradient is P Qᵀ;  error ← M - P Qᵀ
///
/// Vectors, and matrices that would not be half as large, travel as floats with P. Each rank sends 8k(n0 + n1)(N-1)/N
/// bytes for a matrix, in two all-reduces. The first `start` training steps send all gradients as floats. Each rank
/// calculates P Qᵀ itself, so the ranks have the same bits if their machines are of one kind.
class PowerSgd final : public Exchange {
 public:
  PowerSgd(GradientCodec& codec, Communicator& communicator, const PowerSgdOptions& options)
      : Exchange(codec, communicator), options_(options) {}

  StateDict state() const override {
    StateDict state;
    for (const auto& [name, kept] : kept_) {
      state.add(name + kErrorPart, kept.error.clone());
      state.add(name + kFactorPart, kept.q.clone());
    }
    return state;
  }
  void load_state(const StateDict& state) override {
    kept_.clear();
    for (const auto& [name, tensor] : state) {
      const bool is_error = name.ends_with(kErrorPart), is_factor = name.ends_with(kFactorPart);
      check_input(is_error || is_factor, "exchange powersgd: found state '", name, "', expected names that end with ",
                  kErrorPart, " or ", kFactorPart);
      const std::string owner = name.substr(0, name.rfind('#'));
      (is_error ? kept_[owner].error : kept_[owner].q) = tensor.clone();
    }
    for (const auto& [name, kept] : kept_) {
      check_input(kept.error.defined() && kept.q.defined(), "exchange powersgd: found one tensor of the state of '",
                  name, "', expected two: ", kErrorPart, " and ", kFactorPart);
      check_input(kept.q.shape().rank() == 2 && kept.q.shape()[1] == options_.rank,
                  "exchange powersgd: the factor of '", name, "': found ", kept.q.shape(), ", expected ", options_.rank,
                  " columns");
    }
  }
  void confirm(int64_t steps) const override { watch_.confirm(steps); }

 protected:
  MeansToCome begin(FusedGradients message) override {
    Round round = start_round(message);
    const Work work = communicator_.all_reduce(round.first.whole);
    return [this, round = std::move(round), work]() mutable {
      wait(work);
      return finish(round);
    };
  }
  bool runs_on_devices() const override { return true; }

 private:
  static constexpr const char* kErrorPart = "#error";
  static constexpr const char* kFactorPart = "#factor";

  /// What a matrix keeps from step to step, on the gradient's device, in the same memory.
  struct Kept {
    Tensor error;  ///< as the gradient
    Tensor q;      ///< [n1, k]
  };
  /// A message under way.
  struct Round {
    FusedGradients message;
    FlatTensors first;             ///< P of each matrix, and the other tensors
    std::vector<Tensor> matrices;  ///< M [n0, n1]; undefined for tensors that travel as floats
  };

  /// The bits of products with a wide factor depend on the number of threads. Ranks can have several, and with overlap
  /// any thread may make them.
  std::unique_ptr<Alone> alone_if_wide() const {
    return options_.rank > kernels::kNarrowFactor ? std::make_unique<Alone>() : nullptr;
  }

  Round start_round(const FusedGradients& message) {
    const Stopwatch encoding(times_.encode);
    const auto alone = alone_if_wide();
    Round round = {.message = message, .first = {}, .matrices = {}};
    FusedGradients narrow = message, projected;
    std::vector<Tensor> products;
    for (size_t i = 0; i < message.size(); ++i) {
      const auto& [tag, gradient] = message[i];
      const MatrixSides sides(gradient.shape());
      round.matrices.emplace_back();
      if (tag.key.step < options_.start || !sides.is_sent_as_product(options_.rank)) continue;
      Kept& kept = kept_of(tag, gradient, sides);
      const Shape shape = {sides.n0, sides.n1};
      Tensor& m = round.matrices.back() = Tensor::empty(shape, gradient.options());
      narrow[i].gradient = Tensor::empty({sides.n0, options_.rank}, gradient.options());
      kernels::add_and_project(gradient.reshape(shape), kept.error.reshape(shape), kept.q, m, narrow[i].gradient);
      projected.push_back(message[i]);
      products.push_back(narrow[i].gradient);
    }
    check_products(projected, products);
    round.first = FlatTensors::copy(narrow);
    return round;
  }

  std::vector<Tensor> finish(Round& round) {
    const int ranks = communicator_.size();
    std::vector<Tensor> results;
    FusedGradients second;
    {
      const Stopwatch decoding(times_.decode);
      const auto alone = alone_if_wide();
      results = means(std::move(round.first), ranks);
      for (size_t i = 0; i < results.size(); ++i) {
        const Tensor& m = round.matrices[i];
        if (!m.defined()) continue;
        kernels::orthonormalize(results[i]);
        second.push_back(
            {round.message[i].tag, product(m, results[i], {.transpose_a = true}, {m.shape()[1], options_.rank})});
      }
      if (second.empty()) return results;
    }
    FlatTensors sums = FlatTensors::copy(second);
    wait(communicator_.all_reduce(sums.whole));
    const Stopwatch decoding(times_.decode);
    const auto alone = alone_if_wide();
    const std::vector<Tensor> q = means(std::move(sums), ranks);
    for (size_t i = 0, matrix = 0; i < results.size(); ++i) {
      if (!round.matrices[i].defined()) continue;
      const auto& [tag, gradient] = round.message[i];
      const Tensor& m = round.matrices[i];
      Tensor mean = Tensor::empty(m.shape(), m.options());
      Kept& kept = kept_.at(tag.name);
      Tensor error = kept.error.reshape(m.shape());
      kernels::subtract_product(results[i], q[matrix], m, mean, error);
      kernels::keep_columns(q[matrix++], kept.q);  // a column of zeros would stay one for ever
      results[i] = mean.reshape(gradient.shape());
    }
    return results;
  }

  /// Each row of M has a number in M Q, which is not finite if an element of the row is not. Without this check, such
  /// an element would stay in the error and in Q.
  void check_products(const FusedGradients& projected, std::span<const Tensor> products) {
    if (projected.empty()) return;
    if (products.front().device() != Device{})
      return watch_.note(projected, products, std::numeric_limits<float>::max());
    for (size_t i = 0; i < products.size(); ++i) check_finite(projected[i].tag, products[i].span<float>());
  }

  Kept& kept_of(const GradientTag& tag, const Tensor& gradient, const MatrixSides& sides) {
    Kept& kept = kept_[tag.name];
    const Shape q_shape = {sides.n1, options_.rank};
    if (!kept.q.defined()) {
      kept.error = Tensor::zeros(gradient.shape());
      kept.q = Tensor::empty(q_shape);
      const RandomStream random = first_numbers(tag);
      for (int64_t i = 0; i < kept.q.numel(); ++i) kept.q.data<float>()[i] = random.normal(static_cast<uint64_t>(i));
    }
    check_input(kept.q.shape() == q_shape && kept.error.shape() == gradient.shape(), "exchange powersgd: '", tag.name,
                "': found a state of shape ", kept.error.shape(), ", expected ", gradient.shape());
    kept.error = kept.error.to(gradient.device());
    kept.q = kept.q.to(gradient.device());
    return kept;
  }
  /// The same numbers on all ranks.
  static RandomStream first_numbers(const GradientTag& tag) {
    return RandomStream({.seed = tag.key.seed, .purpose = Purpose::power_sgd, .tensor = tag.key.tensor});
  }

  PowerSgdOptions options_;
  std::map<std::string, Kept> kept_;
  GradientWatch watch_;
};

ExchangePlan plan_power_sgd(const GradientCodec&, std::span<const CodedTensor> message, int ranks,
                            SpecParameters& parameters) {
  const PowerSgdOptions options(parameters);
  int64_t first = 0, second = 0;
  for (const CodedTensor& tensor : message) {
    const MatrixSides sides(tensor.shape);
    const bool as_product = sides.is_sent_as_product(options.rank);
    first += as_product ? sides.n0 * options.rank : tensor.shape.numel();
    second += as_product ? sides.n1 * options.rank : 0;
  }
  const auto elements = static_cast<double>(elements_of(message));
  ExchangePlan plan = {{{.encoded = elements, .wire = all_reduce_load(4 * first, ranks)}}};
  if (second > 0) plan.phases.push_back({.wire = all_reduce_load(4 * second, ranks)});
  plan.phases.back().decoded = elements;
  return plan;
}

}  // namespace

constinit const ExchangeEntry power_sgd_entry = {
    "powersgd",
    "none",
    "8·rank·(n0 + n1)·(N-1)/N for a matrix of n0 × n1, if that is at most half of its floats",
    [](const GradientCodec& codec) { return codec.spec() == "none"; },
    [](GradientCodec& codec, Communicator& communicator, SpecParameters& options) -> std::unique_ptr<Exchange> {
      return std::make_unique<PowerSgd>(codec, communicator, PowerSgdOptions(options));
    },
    plan_power_sgd,
    "rank=2, start=0 (the first training steps send floats)"};

}  // namespace tern
