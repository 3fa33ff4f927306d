#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tern::bench {

/// The work of one run of a case. The report shows it as a rate beside the time.
struct Work {
  double amount = 0;  ///< per run; 0: no rate is shown
  const char* unit = "";
};

/// A case to measure. `prepare` makes what the case needs, and returns a function that runs the case once.
struct Case {
  std::string name;
  int threads = 1;
  std::function<std::function<void()>()> prepare;
  Work work = {};
};

inline constexpr int kThreads[] = {1, 2};

// Each function appends its cases to `cases`.
void add_training_steps(std::vector<Case>& cases);
void add_loading(std::vector<Case>& cases);
void add_photos(std::vector<Case>& cases);
void add_updates(std::vector<Case>& cases);
void add_products(std::vector<Case>& cases);
void add_layers(std::vector<Case>& cases);
void add_convolutions(std::vector<Case>& cases);
void add_codecs(std::vector<Case>& cases);
void add_operations(std::vector<Case>& cases);
void add_methods(std::vector<Case>& cases);

}  // namespace tern::bench
