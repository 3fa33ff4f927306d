// Runs the cases of cases.py through tern's public API, and says which differ from PyTorch.
//
//   run_cases FOLDER
//
// A case is equal if every element of its outputs and gradients differs from PyTorch's by at most `tolerance`. NaN
// equals NaN. Exit code 1: a case is wrong.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tern/tern.h"
#include "tests/torch/calls.h"

namespace tern {
namespace {

using nlohmann::json;
using torch_cases::Call;

/// The most by which an element may differ from `expected`. `largest` is the magnitude of the largest expected element.
/// For f32 the absolute part is that of torch.testing.assert_close: it is for elements that are 0 but for rounding.
double tolerance(DType dtype, double expected, double largest) {
  const double size = std::abs(expected);
  return dtype == DType::f64 ? 1e-9 * size + 1e-10 * largest + 1e-12 : 1e-4 * size + 2e-5 * largest + 1e-5;
}

/// A tensor of the file: its place, shape and dtype.
Tensor read_tensor(const json& entry, const std::string& blob) {
  const std::map<std::string, DType> dtypes = {
      {"f32", DType::f32}, {"f64", DType::f64}, {"bf16", DType::bf16}, {"i64", DType::i64}, {"u8", DType::u8}};
  const auto extents = entry["shape"].get<std::vector<int64_t>>();
  const Tensor tensor = Tensor::empty(Shape(std::span(extents)), {.dtype = dtypes.at(entry["dtype"])});
  const size_t bytes = static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype());
  if (bytes > 0) std::memcpy(tensor.raw_data(), blob.data() + entry["at"].get<size_t>(), bytes);
  return tensor;
}

/// "" if the tensors are equal, else what differs.
std::string difference(const Tensor& found, const Tensor& expected) {
  if (found.shape() != expected.shape())
    return fmt::format("shape {}, expected {}", to_string(found.shape()), to_string(expected.shape()));
  const auto a = found.to_vector<double>(), b = expected.to_vector<double>();
  double largest = 0;
  for (const double value : b)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    if (!(std::abs(a[i] - b[i]) <= tolerance(found.dtype(), b[i], largest)))
      return fmt::format("element {} is {:.9g}, expected {:.9g}", i, a[i], b[i]);
  }
  return "";
}

/// Whether a dropout kept about 1 - p of the elements, and scaled them by 1/(1 - p).
std::string dropout_difference(const Tensor& found, const Tensor& x, double p) {
  const auto y = found.to_vector<double>(), from = x.to_vector<double>();
  double kept = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    if (y[i] == 0) continue;
    kept += 1;
    if (std::abs(y[i] - from[i] / (1 - p)) > 1e-5 * std::abs(y[i])) return fmt::format("element {} is {}", i, y[i]);
  }
  const auto n = static_cast<double>(y.size());
  if (std::abs(kept - n * (1 - p)) > 6 * std::sqrt(n * p * (1 - p)) + 1) return fmt::format("{} of {} kept", kept, n);
  return "";
}

/// Runs a case. Returns "" if all is equal, else what differs. Throws what tern throws.
std::string run(const json& line, const std::string& blob) {
  Call call{.attributes = line["attributes"]};
  std::vector<Tensor> raw;
  for (const json& entry : line["inputs"]) {
    raw.push_back(entry.is_null() ? Tensor() : read_tensor(entry, blob));
    const bool grad = !entry.is_null() && entry["grad"].get<bool>();
    call.inputs.push_back(grad ? Variable::leaf(raw.back()) : raw.back().defined() ? Variable(raw.back()) : Variable());
  }
  const auto found = torch_cases::operations().at(line["op"])(call);
  if (line["error"]) return "no error, PyTorch has one";
  if (line.contains("loose")) return dropout_difference(found.at(0).value(), raw.at(0), call.number("probability"));
  const json& outputs = line["outputs"];
  if (found.size() != outputs.size()) return fmt::format("{} outputs, expected {}", found.size(), outputs.size());
  for (size_t i = 0; i < found.size(); ++i)
    if (const auto text = difference(found[i].value(), read_tensor(outputs[i], blob)); !text.empty())
      return fmt::format("output {}: {}", i, text);
  if (!line.contains("cotangents")) return "";
  Variable total;
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor cotangent = read_tensor(line["cotangents"][i], blob).to(found[i].value().dtype());
    const Variable part = sum(multiply(found[i], Variable(cotangent)));
    total = total.defined() ? total + part : part;
  }
  total.backward();
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (line["gradients"][i].is_null() || !line["inputs"][i]["grad"]) continue;
    const Tensor expected = read_tensor(line["gradients"][i], blob);
    const Tensor gradient = call.gradient(i);
    const Tensor own = gradient.defined() ? gradient : Tensor::zeros_like(expected);
    if (const auto text = difference(own, expected); !text.empty())
      return fmt::format("gradient of input {}: {}", i, text);
  }
  return "";
}

/// Counts of one source of cases.
struct Counts {
  int64_t equal = 0, rightly_refused = 0, refused = 0, wrong = 0, missing = 0, cannot = 0;
};

std::string named(const json& line) {
  return fmt::format("{} {} #{}: {}", line["source"].get<std::string>(), line["name"].get<std::string>(),
                     line["id"].get<int64_t>(), line["text"].get<std::string>());
}

int main_of(const std::filesystem::path& folder) {
  std::ifstream file(folder / "tensors.bin", std::ios::binary);
  const std::string blob((std::istreambuf_iterator<char>(file)), {});
  std::map<std::string, Counts> counts;
  std::map<std::string, int64_t> reasons;
  std::ifstream lines(folder / "cases.jsonl");
  for (std::string text; std::getline(lines, text);) {
    const json line = json::parse(text);
    const bool error = line["error"];
    Counts& count = counts[line["source"]];
    if (line.contains("cannot")) {
      ++count.cannot;
      ++reasons[line["name"].get<std::string>() + ": " + line["cannot"].get<std::string>()];
      continue;
    }
    try {
      const std::string wrong = run(line, blob);
      if (wrong.empty()) {
        ++count.equal;
        continue;
      }
      ++(error ? count.missing : count.wrong);
      fmt::print("{}: {}\n    {}\n", error ? "NO ERROR" : "WRONG", named(line), wrong);
    } catch (const std::exception& exception) {
      ++(error ? count.rightly_refused : count.refused);
      if (!error) fmt::print("REFUSED: {}\n    {}\n", named(line), exception.what());
    }
  }
  fmt::print("\ncannot be expressed:\n");
  for (const auto& [reason, times] : reasons) fmt::print("{:6}  {}\n", times, reason);
  fmt::print("\n{:18} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "", "equal", "rightly", "refused", "wrong", "missing",
             "cannot");
  fmt::print("{:18} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "cases of", "", "refused", "", "", "error", "express");
  Counts all;
  const auto print = [](const std::string& name, const Counts& c) {
    fmt::print("{:18} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", name, c.equal, c.rightly_refused, c.refused, c.wrong,
               c.missing, c.cannot);
  };
  for (const auto& [source, c] : counts) {
    print(source, c);
    all.equal += c.equal;
    all.rightly_refused += c.rightly_refused;
    all.refused += c.refused;
    all.wrong += c.wrong;
    all.missing += c.missing;
    all.cannot += c.cannot;
  }
  print("all", all);
  const int64_t run_in_all = all.equal + all.rightly_refused + all.refused + all.wrong + all.missing;
  fmt::print("{} cases ran\n", run_in_all);
  return all.wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tern

int main(int argc, char** argv) {
  tern::wait_passively(argc, argv);
  if (argc != 2) {
    fmt::print(stderr, "usage: run_cases FOLDER\n");
    return 2;
  }
  return tern::main_of(argv[1]);
}
