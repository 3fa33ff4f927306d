#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tern::networks {

/// The output of a network of CTC for one sequence: log-probabilities of the classes in each frame. A view.
struct CtcFrames {
  const float* first;  ///< of frame 0; the classes of a frame are side by side
  int64_t stride;      ///< from one frame to the next
  int64_t frames, classes, blank;

  std::span<const float> frame(int64_t t) const { return {first + t * stride, static_cast<size_t>(classes)}; }
};

/// The labels of the most likely path: the likeliest class of each frame, without repetitions and blanks (Graves et
/// al., 2006, section 3.2). Of equal classes, the first counts.
std::vector<int64_t> best_path(const CtcFrames& output);

/// Likely labels by prefix search with a beam: keeps the `beam` likeliest beginnings after each frame (Graves and
/// Jaitly, 2014, algorithm 1, without a language model). Of equal ones it keeps the first in lexicographic order; NaN
/// is the least likely. A beginning has the probability of all its paths, so the result is often likelier than that of
/// the best path. A class with a probability below 1e-4 in a frame extends no beginning there.
std::vector<int64_t> beam_search(const CtcFrames& output, int64_t beam);

}  // namespace tern::networks
