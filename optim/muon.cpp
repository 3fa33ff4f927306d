#include "tern/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "tern/core/error.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/update.h"

namespace tern {
namespace {

using kernels::ParameterUpdate;

constexpr double kA = 3.4445, kB = -4.775, kC = 2.0315;

/// x ← x · norm / ‖x‖
void set_norm(Tensor& x, double norm) {
  Tensor squared = Tensor::empty({}, {.dtype = DType::f64, .device = x.device()});
  const ParameterUpdate all[] = {{.w = x, .g = x, .first = {}, .second = {}}};
  kernels::squared_norm(all, squared);
  kernels::set_norm(x, squared, norm);
}

/// The iterations on x, which it overwrites. Works on the smaller of XXᵀ and XᵀX.
Tensor iterate(Tensor x, int iterations) {
  const bool tall = x.size(0) > x.size(1);
  const int64_t side = std::min(x.size(0), x.size(1));
  Tensor gram = Tensor::empty({side, side}, x.options()), square = Tensor::empty_like(gram),
         next = Tensor::empty_like(x);
  for (int i = 0; i < iterations; ++i) {
    kernels::matmul(x, x, {.transpose_a = tall, .transpose_b = !tall}, gram);
    kernels::matmul(gram, gram, {}, square);
    kernels::scale(gram, kB, gram);
    kernels::scale(square, kC, square);
    kernels::accumulate(square, gram);
    if (tall)
      kernels::matmul(x, gram, {}, next);
    else
      kernels::matmul(gram, x, {}, next);
    kernels::scale(x, kA, x);
    kernels::accumulate(x, next);
    std::swap(x, next);
  }
  return x;
}

Tensor converted(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = Tensor::empty(x.shape(), {.dtype = dtype, .device = x.device()});
  kernels::convert(x, y);
  return y;
}

class MuonRule final : public StepRule {
 public:
  explicit MuonRule(const Muon::Options& options) : options_(options) {
    check_momentum(options.momentum);
    check(options.iterations >= 1, "muon: ", options.iterations, " iterations, expected 1 or more");
    check(options.arithmetic == DType::f32 || options.arithmetic == DType::bf16, "muon: arithmetic in ",
          options.arithmetic, ", expected f32 or bf16");
  }

  void check_group(const ParameterGroup& group) const override {
    check_momentum(group.settings.momentum.value_or(0));
    for (const NamedParameter& named : group.parameters) {
      detail::check_has_value("muon", named);
      const Shape& shape = named.parameter->value().shape();
      check(shape.rank() >= 2, "muon: '", named.name, "' is ", shape,
            ", expected a matrix or filters; give the group of vectors another rule");
    }
  }
  std::vector<std::string> state_names(const GroupSettings&) const override { return {"momentum"}; }
  bool by_rows() const override { return false; }
  bool writes_copies() const override { return true; }
  bool takes_narrow() const override { return true; }

  void update(std::span<const ParameterUpdate> updates, const Step& step) const override {
    for (const ParameterUpdate& update : updates) {
      if (update.w.numel() == 0) continue;
      Tensor w = update.w;
      const int64_t rows = w.size(0);
      if (options_.normalizes_weights) {
        set_norm(w, std::sqrt(static_cast<double>(rows)));
        update.copy.mark_written();  // the kernel has marked w
      }
      // Its elements lie in the order of w's in memory. Another order of columns gives the same step.
      Tensor x = Tensor::empty({rows, w.numel() / rows}, {.dtype = w.dtype(), .device = w.device()});
      const ParameterUpdate into[] = {{.w = x, .g = update.g, .first = update.first, .second = {}}};
      kernels::momentum_direction(into, {.momentum = step.momentum.value_or(options_.momentum),
                                         .nesterov = options_.nesterov,
                                         .gradient_scale = step.gradient_scale});
      set_norm(x, 1);
      const DType arithmetic = w.dtype() == DType::f64 ? DType::f64 : options_.arithmetic;
      x = converted(iterate(converted(x, arithmetic), options_.iterations), w.dtype());
      const ParameterUpdate along[] = {{.w = w, .g = x, .first = {}, .second = {}, .copy = update.copy}};
      kernels::sgd_update(along, {.lr = step.lr, .weight_decay = step.weight_decay});
    }
  }

 private:
  static void check_momentum(double momentum) {
    check(momentum >= 0 && momentum < 1, "muon: momentum ", momentum, ", expected [0, 1)");
  }

  Muon::Options options_;
};

}  // namespace

Muon::Muon(std::vector<NamedParameter> parameters, const Options& options)
    : Muon(std::vector<ParameterGroup>{{.parameters = std::move(parameters)}}, options) {}

Muon::Muon(const std::vector<ParameterGroup>& groups, const Options& options)
    : Optimizer(groups, options.lr, options.weight_decay, std::make_shared<MuonRule>(options)) {}

std::shared_ptr<const StepRule> Muon::rule(const Options& options) {
  detail::check_rule_alone(options);
  return std::make_shared<MuonRule>(options);
}

Tensor orthogonal(const Tensor& g, int iterations) {
  check(g.rank() == 2 && iterations >= 0, "orthogonal: ", g.shape(), " and ", iterations,
        " iterations, expected a matrix and 0 or more");
  Tensor x = g.to(MemoryFormat::row_major).clone();
  set_norm(x, 1);
  return iterate(x, iterations);
}

}  // namespace tern
