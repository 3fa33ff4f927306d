#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tern {
namespace {

namespace fs = std::filesystem;
using Prefixes = std::vector<std::string>;

/// The headers of tern that each folder may include, as prefixes of paths. The rule of the longest folder that contains
/// a file applies. A prefix that ends in '=' names a folder without its subfolders.
const std::map<std::string, Prefixes> kHouse = {
    {"core", {"core/"}},
    {"kernels", {"core/", "kernels/="}},
    {"kernels/reference", {"core/", "kernels/=", "kernels/reference/"}},
    {"kernels/cpu", {"core/", "kernels/=", "kernels/cpu/=", "kernels/cpu/simd/", "kernels/cpu/processor/"}},
    {"kernels/cpu/x86", {"core/", "kernels/=", "kernels/cpu/=", "kernels/cpu/simd/", "kernels/cpu/x86/"}},
    {"kernels/cuda", {"core/", "kernels/=", "kernels/cuda/"}},
    {"autograd", {"core/", "kernels/=", "autograd/"}},
    {"layers", {"core/", "autograd/", "layers/"}},
    {"optim", {"core/", "kernels/=", "autograd/parameter.h", "optim/"}},
    {"data", {"core/", "data/"}},
    {"dist/comm", {"core/", "dist/comm/"}},
    {"dist/codec", {"core/", "kernels/=", "dist/comm/bytes.h", "dist/codec/"}},
    {"dist/exchange", {"core/", "kernels/=", "dist/comm/", "dist/codec/", "dist/exchange/"}},
    {"dist/methods",
     {"core/", "kernels/=", "autograd/parameter.h", "layers/module.h", "optim/", "dist/comm/", "dist/codec/",
      "dist/exchange/", "dist/methods/"}},
    {"dist/cost", {"core/", "kernels/codec.h", "dist/"}},
    {"apps/trainer", {"core/", "kernels/=", "autograd/", "layers/", "optim/", "data/", "dist/", "trainer/"}},
    {"apps/trainer/rank", {"core/", "kernels/=", "dist/", "trainer/=", "trainer/rank/"}},
    {"apps/trainer/data", {"core/", "data/", "trainer/=", "trainer/rank/", "trainer/data/"}},
    {"apps/trainer/flags",
     {"core/", "kernels/=", "layers/", "optim/", "data/", "dist/", "trainer/=", "trainer/rank/", "trainer/data/",
      "trainer/flags/"}},
    {"apps/trainer/report",
     {"core/", "kernels/=", "autograd/", "layers/", "optim/", "data/", "dist/", "trainer/=", "trainer/rank/",
      "trainer/data/", "trainer/flags/", "trainer/report/"}},
    {"apps/trainer/run",
     {"core/", "kernels/=", "autograd/", "layers/", "optim/", "data/", "dist/", "trainer/=", "trainer/rank/",
      "trainer/data/", "trainer/flags/", "trainer/report/", "trainer/run/"}},
    {"apps/networks",
     {"core/", "kernels/=", "autograd/", "layers/", "optim/", "data/", "dist/", "trainer/", "networks/", "tern.h"}},
    {"apps/advise",
     {"core/", "kernels/=", "autograd/", "layers/", "optim/", "data/", "dist/", "trainer/", "networks/",
      "apps/advise/"}},
    {"apps/reproduce",
     {"core/", "kernels/=", "autograd/", "layers/", "optim/", "data/", "dist/", "trainer/", "networks/", "apps/advise/",
      "apps/reproduce/"}},
    {"apps",
     {"core/", "kernels/=", "autograd/", "layers/", "optim/", "data/", "dist/", "trainer/", "networks/", "apps/",
      "tern.h"}},
};

/// The folders that may include another library's headers. A header that is not listed, and is not from C++ or POSIX,
/// is refused.
const std::map<std::string, Prefixes> kLibraries = {
    {"omp.h", {"core/", "kernels/cpu/"}},
    {"sanitizer/asan_interface.h", {"core/"}},
    {"fmt/", {"core/", "optim/", "data/", "dist/", "apps/"}},
    {"nlohmann/", {"core/", "apps/"}},
    {"oneapi/dnnl/", {"kernels/cpu/x86/"}},
    {"cuda_runtime.h", {"core/cuda/", "kernels/cuda/"}},
    {"nccl.h", {"dist/comm/nccl/"}},
    {"mpi.h", {"dist/comm/mpi/"}},
    {"cublasLt.h", {"kernels/cuda/"}},
    {"cudnn.h", {"kernels/cuda/"}},
    {"nvtx3/", {"kernels/cuda/"}},
    {"immintrin.h", {"core/x86/", "kernels/cpu/x86/"}},
    {"nmmintrin.h", {"core/x86/", "kernels/cpu/x86/"}},
    {"wmmintrin.h", {"core/x86/", "kernels/cpu/x86/"}},
    {"cpuid.h", {"core/x86/", "kernels/cpu/x86/"}},
    {"zlib.h", {"data/"}},
    {"lzma.h", {"data/"}},
    {"archive", {"data/"}},
    {"stb/", {"data/"}},
    {"kissfft/", {"data/"}},
    {"CLI/", {"apps/"}},
    {"openssl/", {"data/", "dist/comm/"}},
};
const Prefixes kPosix = {"sys/",    "unistd.h", "fcntl.h", "poll.h",    "signal.h", "termios.h",
                         "netdb.h", "netinet/", "arpa/",   "fnmatch.h", "dlfcn.h",  "ifaddrs.h"};

bool starts_with_any(const std::string& path, const Prefixes& prefixes) {
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) {
    if (!prefix.ends_with('=')) return path.starts_with(prefix);
    const size_t folder = prefix.size() - 1;
    return path.compare(0, folder, prefix, 0, folder) == 0 && path.find('/', folder) == std::string::npos;
  });
}

/// A header as users include it: <tern/trainer/...> for apps/trainer, and <tern/networks/...> for apps/networks.
std::string spelled(const std::string& header) {
  const bool has_users = header.starts_with("apps/trainer/") || header.starts_with("apps/networks/");
  return has_users ? header.substr(header.find('/') + 1) : header;
}

std::string house_rule(const std::string& file, const std::string& header) {
  std::string folder = fs::path(file).parent_path();
  while (!folder.empty() && !kHouse.contains(folder)) folder = fs::path(folder).parent_path();
  if (folder.empty()) return "stands in no folder of the house";
  if (spelled(header) != header) return "tern/" + header + " is spelled tern/" + spelled(header);
  return starts_with_any(header, kHouse.at(folder)) ? "" : folder + " may not include tern/" + header;
}

std::string library_rule(const std::string& file, const std::string& header) {
  if (header.find_first_of("./") == std::string::npos || starts_with_any(header, kPosix)) return "";
  for (const auto& [library, folders] : kLibraries) {
    if (!header.starts_with(library)) continue;
    return starts_with_any(file, folders) ? "" : header + " belongs to other folders";
  }
  return header + " is of no library the house knows";
}

/// Returns "file:line: what is wrong" for each line of `text` that breaks a rule. `file` is relative to the root.
std::vector<std::string> broken_rules(const std::string& file, std::string_view text) {
  std::vector<std::string> broken;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::string directive = line;
    std::erase_if(directive, [](char c) { return c == ' ' || c == '\t'; });
    std::string wrong;
    if (directive.starts_with("#if") || directive.starts_with("#el")) {
      wrong = "conditional compilation; CMake's file lists choose what is built";
    } else if (directive.starts_with("#include")) {
      const size_t open = directive.find_first_of("\"<"), close = directive.find_last_of("\">");
      const std::string header = directive.substr(open + 1, close - open - 1);
      if (header.starts_with("tern/")) {
        wrong = house_rule(file, header.substr(5));
      } else if (directive[open] == '"') {
        wrong = "\"" + header + "\" is not a path from tern/";
      } else {
        wrong = library_rule(file, header);
      }
    }
    if (!wrong.empty()) broken.push_back(file + ":" + std::to_string(number) + ": " + wrong);
  }
  return broken;
}

TEST(Layering, TheHouseIncludesDownwardsOnly) {
  const fs::path root = TERN_SOURCE_DIR;
  int files = 0;
  for (const char* folder : {"core", "kernels", "autograd", "layers", "optim", "data", "dist", "apps"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp" && extension != ".cu") continue;
      std::ifstream stream(entry.path());
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      for (const auto& rule : broken_rules(fs::relative(entry.path(), root), text)) ADD_FAILURE() << rule;
      ++files;
    }
  }
  EXPECT_GT(files, 20) << "few sources under " << root;
}

/// The headers that each header of tern includes.
using IncludeGraph = std::map<std::string, std::vector<std::string>>;

/// The headers of one cycle. The first header is also the last. Empty if there is no cycle.
std::vector<std::string> find_cycle(const IncludeGraph& graph) {
  std::vector<std::string> path;
  std::set<std::string> done;
  const std::function<bool(const std::string&)> visit = [&](const std::string& header) {
    const auto begun = std::ranges::find(path, header);
    const bool is_cycle = begun != path.end();
    if (is_cycle) path.erase(path.begin(), begun);
    if (!is_cycle && done.contains(header)) return false;
    path.push_back(header);
    if (is_cycle) return true;
    if (const auto entry = graph.find(header); entry != graph.end())
      for (const auto& next : entry->second)
        if (visit(next)) return true;
    path.pop_back();
    done.insert(header);
    return false;
  };
  for (const auto& [header, includes] : graph)
    if (visit(header)) return path;
  return {};
}

/// The headers of tern that each header of tern includes, and those that tern.h does.
IncludeGraph includes_of_headers() {
  const fs::path root = TERN_SOURCE_DIR;
  IncludeGraph graph;
  const auto add = [&](const fs::path& header) {
    std::ifstream stream(header);
    const std::string opening = "#include \"tern/";
    for (std::string line; std::getline(stream, line);)
      if (line.starts_with(opening))
        graph[spelled(fs::relative(header, root))].push_back(
            line.substr(opening.size(), line.rfind('"') - opening.size()));
  };
  add(root / "tern.h");
  for (const char* folder : {"core", "kernels", "autograd", "layers", "optim", "data", "dist", "apps"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().extension() == ".h") add(entry.path());
  return graph;
}

// Users who include the whole library see the options of operations, but no kernels.
TEST(Layering, TheWholeHeaderHasNoKernels) {
  const IncludeGraph graph = includes_of_headers();
  std::vector<std::string> open = {"tern.h"};
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string header = open.back();
    open.pop_back();
    if (!seen.insert(header).second) continue;
    EXPECT_TRUE(!header.starts_with("kernels/") || header == "kernels/options.h") << header;
    if (const auto entry = graph.find(header); entry != graph.end())
      open.insert(open.end(), entry->second.begin(), entry->second.end());
  }
  EXPECT_GT(seen.size(), 50u);
}

TEST(Layering, NoHeaderIncludesItself) {
  const IncludeGraph graph = includes_of_headers();
  EXPECT_GT(graph.size(), 100u);
  EXPECT_EQ(find_cycle(graph), std::vector<std::string>());
}

TEST(Layering, FindsACycle) {
  EXPECT_EQ(find_cycle({{"a", {"b"}}, {"b", {"c", "d"}}, {"d", {"b"}}}), (std::vector<std::string>{"b", "d", "b"}));
  EXPECT_EQ(find_cycle({{"a", {"b", "c"}}, {"b", {"d"}}, {"c", {"d"}}}), std::vector<std::string>());
}

TEST(Layering, RefusesPlantedBadIncludes) {
  const auto refused = [](const char* file, const char* line) { return !broken_rules(file, line).empty(); };
  EXPECT_TRUE(refused("core/shape.h", "#include \"tern/kernels/matmul.h\""));
  EXPECT_TRUE(refused("layers/linear.cpp", "#include \"tern/kernels/matmul.h\""));
  EXPECT_TRUE(refused("layers/linear.cpp", "  #  include <tern/optim/sgd.h>"));
  EXPECT_TRUE(refused("autograd/matmul.cpp", "#include \"tern/kernels/cpu/sgemm.h\""));
  EXPECT_TRUE(refused("kernels/kernel.cpp", "#include \"tern/kernels/reference/elementwise.h\""));
  EXPECT_TRUE(refused("optim/sgd.h", "#include \"tern/autograd/variable.h\""));
  EXPECT_TRUE(refused("dist/comm/work.h", "#include \"tern/dist/codec/codec.h\""));
  EXPECT_TRUE(refused("dist/codec/qsgd.cpp", "#include \"tern/dist/comm/communicator.h\""));
  EXPECT_TRUE(refused("dist/exchange/ring.cpp", "#include \"tern/dist/methods/averaging.h\""));
  EXPECT_TRUE(refused("dist/methods/local_sgd.cpp", "#include \"tern/dist/cost/round_time.h\""));
  EXPECT_TRUE(refused("dist/work.h", "#include \"tern/core/error.h\""));
  EXPECT_TRUE(refused("data/loader.cpp", "#include \"tern/tern.h\""));
  EXPECT_TRUE(refused("apps/trainer/application.h", "#include \"tern/networks/lenet.h\""));
  EXPECT_TRUE(refused("apps/trainer/report/progress.cpp", "#include \"tern/trainer/run/trainer.h\""));
  EXPECT_TRUE(refused("apps/networks/lenet.h", "#include \"tern/apps/reproduce/experiments.h\""));
  EXPECT_TRUE(refused("apps/train_lenet.cpp", "#include \"tern/apps/networks/lenet.h\""));
  EXPECT_TRUE(refused("core/shape.h", "#include \"shape.h\""));
  EXPECT_TRUE(refused("apps/train_lenet.cpp", "#include \"tern/apps/trainer/settings.h\""));
  EXPECT_TRUE(refused("autograd/matmul.cpp", "#include <oneapi/dnnl/dnnl.hpp>"));
  EXPECT_TRUE(refused("kernels/cpu/gemm.cpp", "#include <oneapi/dnnl/dnnl.h>"));
  EXPECT_TRUE(refused("kernels/cpu/gemm.cpp", "#include \"tern/kernels/cpu/x86/kernels.h\""));
  EXPECT_TRUE(refused("kernels/cpu/simd/baseline.cpp", "#include <immintrin.h>"));
  EXPECT_TRUE(refused("core/shape.cpp", "#include <boost/any.hpp>"));
  EXPECT_TRUE(refused("core/shape.cpp", "#ifdef NDEBUG"));
  EXPECT_TRUE(refused("core/shape.cpp", "# if 0"));
  EXPECT_EQ(broken_rules("core/shape.cpp", "\n#include <zlib.h>\n"),
            std::vector<std::string>{"core/shape.cpp:2: zlib.h belongs to other folders"});
}

TEST(Layering, AcceptsWhatTheHouseAllows) {
  const auto accepted = [](const char* file, const char* line) { return broken_rules(file, line).empty(); };
  EXPECT_TRUE(accepted("layers/linear.cpp", "#include \"tern/autograd/matmul.h\""));
  EXPECT_TRUE(accepted("optim/sgd.h", "#include \"tern/autograd/parameter.h\""));
  EXPECT_TRUE(accepted("dist/codec/qsgd.cpp", "#include \"tern/dist/comm/bytes.h\""));
  EXPECT_TRUE(accepted("kernels/cpu/x86/onednn.cpp", "#include <oneapi/dnnl/dnnl.hpp>"));
  EXPECT_TRUE(accepted("apps/trainer/flags/command_line.cpp", "#include <CLI/CLI.hpp>"));
  EXPECT_TRUE(accepted("apps/trainer/run/trainer.cpp", "#include \"tern/trainer/report/listener.h\""));
  EXPECT_TRUE(accepted("apps/train_lenet.cpp", "#include \"tern/networks/lenet.h\""));
  EXPECT_TRUE(accepted("apps/networks/lenet.h", "#include \"tern/networks/networks.h\""));
  EXPECT_TRUE(accepted("core/state_dict.cpp", "#include <sys/stat.h>"));
  EXPECT_TRUE(accepted("core/shape.cpp", "#include <vector>\n#pragma once\n#define X 1\n"));
}

}  // namespace
}  // namespace tern
