#include "tern/kernels/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tern/core/log_add.h"
#include "tern/core/visit.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

/// One sequence: its states, and the logarithms of their probabilities in each frame.
struct Lattice {
  std::vector<int64_t> classes;                ///< of each state: blank, label, blank, label, ..., blank
  std::vector<std::vector<double>> emissions;  ///< [frame][state]

  int64_t frames() const { return std::ssize(emissions); }
  size_t states() const { return classes.size(); }
  /// Whether a path may go from state s - 2 to s: over the blank between two labels, unless they are equal.
  bool skips(size_t s) const { return s >= 3 && s % 2 == 1 && classes[s] != classes[s - 2]; }
};

template <class T>
Lattice lattice_of(const Tensor& log_probabilities, const kernels::CtcTargets& targets, int64_t n) {
  const int64_t batch = log_probabilities.size(1), columns = log_probabilities.size(2);
  const int64_t* labels = targets.labels.data<int64_t>() + n * targets.labels.size(1);
  Lattice lattice{.classes = {targets.blank}, .emissions = {}};
  for (int64_t i = 0; i < targets.label_lengths.data<int64_t>()[n]; ++i) {
    lattice.classes.push_back(labels[i]);
    lattice.classes.push_back(targets.blank);
  }
  for (int64_t t = 0; t < targets.input_lengths.data<int64_t>()[n]; ++t) {
    const T* row = log_probabilities.data<T>() + (t * batch + n) * columns;
    std::vector<double>& frame = lattice.emissions.emplace_back();
    for (const int64_t c : lattice.classes) frame.push_back(row[c]);
  }
  return lattice;
}

/// [frame][state]: log of the sum over the path beginnings that are in this state in this frame, with it (equation 6).
std::vector<std::vector<double>> forward(const Lattice& lattice) {
  std::vector<std::vector<double>> alphas;
  for (int64_t t = 0; t < lattice.frames(); ++t) {
    std::vector<double> alpha(lattice.states(), kImpossible);
    for (size_t s = 0; s < alpha.size(); ++s) {
      if (t == 0) {
        alpha[s] = s <= 1 ? 0 : kImpossible;
      } else {
        const std::vector<double>& before = alphas.back();
        alpha[s] = before[s];
        if (s >= 1) alpha[s] = log_add(alpha[s], before[s - 1]);
        if (lattice.skips(s)) alpha[s] = log_add(alpha[s], before[s - 2]);
      }
      alpha[s] += lattice.emissions[static_cast<size_t>(t)][s];
    }
    alphas.push_back(std::move(alpha));
  }
  return alphas;
}

/// log of the sum over the path ends from each state, without the frame of this state (equation 10, less y).
std::vector<double> backward(const Lattice& lattice, size_t t, const std::vector<double>& next) {
  std::vector<double> beta(lattice.states(), kImpossible);
  for (size_t s = 0; s < beta.size(); ++s) {
    if (t + 1 == lattice.emissions.size()) {
      beta[s] = s + 2 >= beta.size() ? 0 : kImpossible;
      continue;
    }
    const auto through = [&](size_t to) { return next[to] + lattice.emissions[t + 1][to]; };
    beta[s] = through(s);
    if (s + 1 < beta.size()) beta[s] = log_add(beta[s], through(s + 1));
    if (s + 2 < beta.size() && lattice.skips(s + 2)) beta[s] = log_add(beta[s], through(s + 2));
  }
  return beta;
}

/// log p. Without frames, only the path without labels exists.
double log_likelihood(const Lattice& lattice, const std::vector<std::vector<double>>& alphas) {
  const size_t states = lattice.states();
  if (alphas.empty()) return states == 1 ? 0 : kImpossible;
  const std::vector<double>& last = alphas.back();
  return states == 1 ? last[0] : log_add(last[states - 1], last[states - 2]);
}

void ctc_loss(const Tensor& log_probabilities, const kernels::CtcTargets& targets, Tensor& losses, Tensor& shares) {
  kernels::check_ctc_shapes(log_probabilities, targets);
  const int64_t batch = log_probabilities.size(1), columns = log_probabilities.size(2);
  shares.fill(0);
  visit_floating(log_probabilities.dtype(), "ctc_loss", [&]<class T>(T) {
    using Wide = wider_t<T>;
    for (int64_t n = 0; n < batch; ++n) {
      kernels::check_ctc_sequence(log_probabilities, targets, n);
      const Lattice lattice = lattice_of<T>(log_probabilities, targets, n);
      const auto alphas = forward(lattice);
      const double total = log_likelihood(lattice, alphas);
      if (total == kImpossible && targets.zero_infinity) {
        losses.data<Wide>()[n] = 0;
        continue;
      }
      losses.data<Wide>()[n] = static_cast<Wide>(-total);
      std::vector<double> beta;
      for (size_t t = alphas.size(); t-- > 0;) {
        beta = backward(lattice, t, beta);
        Wide* share = shares.data<Wide>() + (static_cast<int64_t>(t) * batch + n) * columns;
        if (total == kImpossible) std::fill_n(share, columns, std::numeric_limits<Wide>::quiet_NaN());
        for (size_t s = 0; s < beta.size(); ++s)
          share[lattice.classes[s]] += static_cast<Wide>(std::exp(alphas[t][s] + beta[s] - total));
      }
    }
  });
}

}  // namespace

void provide_ctc() { kernels::ctc_loss.provide(Target::reference, ctc_loss); }

}  // namespace tern::reference
