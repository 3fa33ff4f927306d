#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tern::bench {

/// What one run of a case does, for a rate beside its time.
struct Work {
  double amount = 0;  ///< per run; 0: no rate is shown
  const char* unit = "";
};

/// Something to time. `prepare` makes what is needed and returns a function that runs it once.
struct Case {
  std::string name;
  int threads = 1;
  std::function<std::function<void()>()> prepare;
  Work work = {};
};

inline constexpr int kThreads[] = {1, 2};

// Each appends its cases.
void add_training_steps(std::vector<Case>& cases);
void add_loading(std::vector<Case>& cases);
void add_photos(std::vector<Case>& cases);
void add_updates(std::vector<Case>& cases);
void add_products(std::vector<Case>& cases);
void add_layers(std::vector<Case>& cases);
void add_convolutions(std::vector<Case>& cases);
void add_codecs(std::vector<Case>& cases);

}  // namespace tern::bench
