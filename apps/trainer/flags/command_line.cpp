#include "tern/trainer/flags/command_line.h"

#include <CLI/CLI.hpp>
#include <CLI/StringTools.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/error.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/flags/flag_table.h"
#include "tern/trainer/flags/rules.h"
#include "tern/trainer/flags/words.h"
#include "tern/trainer/rank/machine.h"

namespace tern::trainer {
namespace {

/// A line of a configuration file that sets a flag.
struct ConfigLine {
  int number;                       ///< from 1
  std::string flag;                 ///< without dashes
  std::vector<std::string> values;  ///< empty if there is no '='
};

/// Parses the value of one line: a word or a list.
class ValueReader {
 public:
  explicit ValueReader(std::string_view text) : text_(text) {}

  std::vector<std::string> read() {
    if (!text_.starts_with('[')) return {read_one("")};
    std::vector<std::string> values;
    do {
      text_.remove_prefix(1);
      values.push_back(read_one(",]"));
    } while (text_.starts_with(','));
    check_input(text_ == "]", "expected ']' at the end");
    return values;
  }

 private:
  /// Reads a value up to the first character of `ends`; reads to the end if `ends` is empty.
  std::string read_one(std::string_view ends) {
    skip_spaces();
    std::string value;
    if (text_.starts_with('"')) {
      value = read_quoted();
      skip_spaces();
      check_input(text_.empty() || ends.find(text_[0]) != std::string_view::npos, "found '", text_,
                  "' after the closing quote");
      return value;
    }
    value = text_.substr(0, ends.empty() ? text_.size() : text_.find_first_of(ends));
    text_.remove_prefix(value.size());
    return CLI::detail::trim(value);
  }

  std::string read_quoted() {
    std::string value;
    for (size_t i = 1; i < text_.size(); ++i) {
      if (text_[i] == '"') {
        text_.remove_prefix(i + 1);
        return value;
      }
      const bool escaped = text_[i] == '\\' && i + 1 < text_.size();
      if (escaped) ++i;
      value += escaped && text_[i] == 'n' ? '\n' : text_[i];
    }
    fail_input({"expected a closing quote"});
  }

  void skip_spaces() { text_.remove_prefix(std::min(text_.size(), text_.find_first_not_of(" \t"))); }

  std::string_view text_;
};

/// Reads the file of --config. A line is `flag=value`, or only `flag` for a switch; a line that starts with '#' is a
/// comment. A value is a word or a list [a,b]. A word may be in double quotes; within them, write a quote and a
/// backslash with a backslash before it, and a new line as \n. Throws InputError with the file, and with the line if
/// it is wrong.
std::vector<ConfigLine> read_config(const std::string& path) {
  check_input(!std::filesystem::is_directory(path), "--config: ", path, ": is a folder, expected a file of flags");
  std::ifstream file(path);
  check_input(file.is_open(), "--config: ", path, ": cannot be read: ", std::strerror(errno));
  std::vector<ConfigLine> found;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    CLI::detail::trim(text);
    if (text.empty() || text[0] == '#') continue;
    const size_t equals = text.find('=');
    ConfigLine line{.number = number, .flag = text.substr(0, equals), .values = {}};
    CLI::detail::trim(line.flag);
    try {
      if (equals != std::string::npos)
        line.values = ValueReader(CLI::detail::trim_copy(text.substr(equals + 1))).read();
    } catch (const InputError& error) {
      throw InputError(join({"--config: ", path, ": line ", number, ": ", error.what()}));
    }
    found.push_back(std::move(line));
  }
  return found;
}

/// The group of the flags that a configuration file cannot set.
constexpr const char* kProgram = "Program";
/// --codec help lists the codecs.
constexpr const char* kHelp = "help";

/// The default of --eval-batch-size never falls below it, because smaller batches are slow.
constexpr int64_t kLeastEvalBatch = 16;

/// The words of a field that is a choice; empty for other fields.
std::string words_of_choice(const auto&) { return ""; }
std::string words_of_choice(const Worded auto& field) { return listed(words_of(field)); }
template <Worded E>
std::string words_of_choice(const std::optional<E>&) {
  return listed(words_of(E{}));
}

/// Formats the help text: the default value is in brackets after the description.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(30); }
  std::string make_option_name(const CLI::Option* option, bool) const override {
    const std::string name = "--" + option->get_lnames().front();
    return option->get_default_str() == "on" ? name + ",--no-" + name.substr(2) : option->get_name(false, true);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : ' ' + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string& value = option->get_default_str();
    const bool bare = value.empty() || value.starts_with('[');  // a list has brackets of its own
    return join({option->get_description(), value.empty() ? "" : " ", bare ? value : join({"[", value, "]"})});
  }
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    for (size_t gap; (gap = text.find("\n\n\n")) != std::string::npos;) text.erase(gap, 1);
    return text;
  }
};

/// Whether `message` contains `flag`, but not as the start of a longer flag.
bool speaks_of(const std::string& message, const std::string& flag) {
  for (size_t at = message.find(flag); at != std::string::npos; at = message.find(flag, at + 1)) {
    const char next = message[at + flag.size()];
    if (next != '-' && !std::isalpha(static_cast<unsigned char>(next))) return true;
  }
  return false;
}

/// Parses one command line into settings, with CLI11.
class CommandLine {
 public:
  /// The words may name the recipe that sets the defaults; `read` reads all of them.
  CommandLine(const Application& application, int argc, const char* const* argv) : application_(application) {
    settings_ = application.defaults;
    for (const NamedRecipe& recipe : application.recipes)
      if (recipe.name == value_of("--recipe", argc, argv)) recipe.change(settings_);
    settings_.codecs = application.codecs;
    settings_.augment = application.augment;
    for (const Choice& choice : application.choices) {
      check(!choice.values.empty(), "the application's choice --", choice.flag, " has no values");
      settings_.choices[choice.flag] = choice.values.front();
      if (!choice.changes_training) settings_.score_flags.insert(choice.flag);
    }
    for (const Count& count : application.counts) {
      settings_.counts[count.flag] = count.value;
      if (!count.changes_training) settings_.score_flags.insert(count.flag);
    }
    make_task();
    check_offer();
    if (!known_dataset(settings_)) settings_.data = settings_.datasets.front().name;
    app_.name(application.name);
    app_.description("Trains a model, evaluates it, and writes down what happened.");
    app_.formatter(std::make_shared<HelpFormatter>());
    app_.allow_extras();
    visit_flags(settings_, [&](const Flag& flag, auto& field) {
      if (flag.offered) add(flag, field);
    });
    app_.get_option("--data")->type_name(data_words());
    if (!application.recipes.empty()) add_recipes();
    app_.add_option("--config", config_, "Read flags from this file")->group(kProgram)->type_name("FILE");
    app_.add_flag("--print-config", print_config_, "Print the settings as such a file")->group(kProgram);
    app_.add_flag("--version", print_version_, "Print the versions of tern and what it uses")->group(kProgram);
    app_.set_help_flag("--help,-h", "Print this help")->group(kProgram);
    for (const Choice& choice : application.choices) add_choice(choice);
    for (const Count& count : application.counts) {
      check_own(count.flag);
      add({"Model", count.flag.c_str(), "N", count.help.c_str()}, settings_.counts[count.flag] = count.value);
    }
  }

  Invocation read(int argc, const char* const* argv) {
    given_ = check_words(app_, argc, argv);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return {.run = false, .text = app_.help()};
    } catch (const CLI::ParseError& error) {
      throw InputError(error.what());
    }
    if (print_version_) return {.run = false, .text = version_text(application_.name)};
    refuse_unknown(app_);
    if (!config_.empty()) add_config();
    overrule_defaults();
    if (application_.settle) application_.settle(settings_, [this](const char* flag) { return is_given(flag); });
    if (settings_.codec == kHelp)
      return {.run = false, .text = codec_help(settings_.codecs) + '\n' + exchange_help(settings_.codecs)};
    std::optional<ClusterPlace> place;
    try {
      place = find_rank(settings_);
      if (place) settle(settings_, *place);
      validate(settings_);
      refuse_without_effect();
      settle_batch_size();
      settle_eval_batch_size();
    } catch (const InputError& error) {
      throw InputError(error.what() + lines_of_flags_in(error.what()));
    }
    if (print_config_) return {.run = false, .text = config_text(settings_)};
    make_task();
    return {.settings = settings_, .place = place, .run = true, .text = {}};
  }

 private:
  /// Makes the task for the present settings, and lists its data sets and the application's.
  void make_task() {
    settings_.task = application_.task ? application_.task(settings_) : nullptr;
    settings_.datasets = task_of(settings_)->datasets();
    settings_.datasets.insert(settings_.datasets.end(), application_.datasets.begin(), application_.datasets.end());
  }

  /// Checks what the application offers: these are faults of the program, not of its user.
  void check_offer() const {
    check_scores(task_of(settings_)->scores());
    check(!settings_.datasets.empty(), "the application offers no data set");
    std::set<std::string> names;
    for (const DatasetEntry& entry : settings_.datasets) {
      check(names.insert(entry.name).second, "the application offers two data sets '", entry.name, "'");
      check(entry.load != nullptr, "the data set '", entry.name, "' has no `load`");
    }
    check(known_dataset(settings_) || settings_.data == TrainSettings().data, "the default data set '", settings_.data,
          "' is none of ", data_words());
  }

  /// The word after `flag`, or behind it and '='; empty if there is none.
  static std::string_view value_of(std::string_view flag, int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      if (word == flag && i + 1 < argc) return argv[i + 1];
      if (word.starts_with(flag) && word.substr(flag.size()).starts_with('=')) return word.substr(flag.size() + 1);
    }
    return {};
  }

  void add(const Flag& flag, bool& field) {
    const std::string name = std::string("--") + flag.name;
    app_.add_flag(field ? name + ",!--no-" + flag.name : name, field, flag.help)
        ->group(flag.group)
        ->default_str(field ? "on" : "");
  }

  template <class T>
  void add(const Flag& flag, T& field) {
    const std::string choice = words_of_choice(field);
    const auto read = [choice, expected = flag.value, &field](const std::vector<std::string>& words) {
      if (std::is_same_v<T, std::string> || !choice.empty())
        check_input(!words.back().empty(), "found nothing, expected ", expected);
      read_value(words, field);
    };
    auto* option =
        add_option(app_, std::string("--") + flag.name, choice.empty() ? flag.value : choice, flag.help, read);
    option->group(flag.group)->default_str(show_value(field));
    if constexpr (std::is_same_v<T, std::vector<double>> || std::is_same_v<T, std::vector<std::string>>)
      option->expected(1, 1 << 20);
  }

  /// "digits|mnist": the words after --data.
  std::string data_words() const {
    std::vector<std::string_view> words;
    for (const DatasetEntry& entry : settings_.datasets) words.push_back(entry.name);
    return listed(words);
  }

  /// Adds --recipe. The constructor has applied its value already.
  void add_recipes() {
    std::vector<std::string_view> names;
    std::string help = "Other defaults";
    for (const NamedRecipe& recipe : application_.recipes) {
      names.push_back(recipe.name);
      help += join({names.size() == 1 ? ". " : "; ", recipe.name, ": ", recipe.help});
    }
    const auto check_name = [names](const std::vector<std::string>& found) {
      check_input(std::ranges::count(names, found.back()) > 0, "found '", found.back(), "', expected ", listed(names));
    };
    add_option(app_, "--recipe", listed(names), help, check_name)->group(kProgram);
  }

  /// Checks the name of a flag of the application.
  void check_own(const std::string& flag) const {
    check(!flag.starts_with('-'), "the application's flag '", flag, "' has dashes, expected its name without them");
    check(app_.get_option_no_throw("--" + flag) == nullptr, "the application has a flag --", flag,
          ", but there is another flag of this name");
  }

  void add_choice(const Choice& choice) {
    check_own(choice.flag);
    std::string& field = settings_.choices[choice.flag] = choice.values.front();
    const std::vector<std::string_view> words(choice.values.begin(), choice.values.end());
    const auto read = [words, &field](const std::vector<std::string>& found) {
      check_input(std::ranges::count(words, found.back()) > 0, "found '", found.back(), "', expected ", listed(words));
      field = found.back();
    };
    add_option(app_, "--" + choice.flag, listed(words), choice.help, read)->group("Model")->default_str(field);
  }

  /// Applies the flags of the file that the command line does not give.
  void add_config() {
    for (const ConfigLine& line : read_config(config_)) {
      try {
        CLI::Option* option = app_.get_option_no_throw("--" + line.flag);
        if (!option) fail_unknown(app_, "flag", line.flag, "");
        check_input(option->get_group() != kProgram, "found '", line.flag, "', expected it on the command line only");
        const auto [first, is_new] = config_lines_.emplace(option->get_name(), line.number);
        check_input(is_new, option->get_name(), ": given in line ", first->second, " already, expected once");
        if (!overruled(*option)) add_line(*option, line);
      } catch (const InputError& error) {
        throw InputError(join({"--config: ", config_, ": line ", line.number, ": ", error.what()}));
      }
    }
  }

  void add_line(CLI::Option& option, const ConfigLine& line) {
    const size_t most = std::max(1, option.get_items_expected_max());
    check_input(line.values.size() <= most, option.get_name(), ": found ", line.values.size(), " values, expected one");
    if (is_switch(option)) {
      const std::string word = line.values.empty() ? "true" : line.values.front();
      check_switch(option, word);
      option.add_result(option.get_flag_value(line.flag, word));
    } else {
      check_input(!line.values.empty(), option.get_name(), ": found no value, expected ", option.get_type_name());
      option.add_result(line.values);
    }
    option.run_callback();
  }

  /// --epochs and --iterations both set the length: either one on the command line overrules both in the file. So do
  /// the two flags of a batch's size.
  bool overruled(const CLI::Option& option) const {
    const auto given = [this](const char* name) { return given_.contains(app_.get_option(name)); };
    const auto by_either = [&](const char* a, const char* b) {
      return (&option == app_.get_option(a) || &option == app_.get_option(b)) && (given(a) || given(b));
    };
    return given_.contains(&option) || by_either("--epochs", "--iterations") ||
           by_either("--batch-size", "--local-batch-size");
  }

  /// A default does not count if another flag is given for the same thing, or asks for another default.
  void overrule_defaults() {
    const bool epochs = is_given("epochs"), iterations = is_given("iterations");
    if (epochs && !iterations) settings_.iterations.reset();
    if (iterations && !epochs) settings_.epochs.reset();
    if (is_given("batch-size") && !is_given("local-batch-size")) settings_.local_batch_size.reset();
    const std::string_view codec = traits_of(settings_.method).codec;
    if (codec != kFloats && !is_given("codec")) settings_.codec = codec;
  }

  /// --local-batch-size sets --batch-size. If both are given, they must agree.
  void settle_batch_size() {
    if (!settings_.local_batch_size) return;
    const int64_t workers = settings_.workers.value_or(1), all = *settings_.local_batch_size * workers;
    check_input(!is_given("batch-size") || settings_.batch_size == all, "--batch-size ", settings_.batch_size,
                " and --local-batch-size ", *settings_.local_batch_size, " contradict each other: ", workers,
                workers == 1 ? " worker has " : " workers have ", all, " samples in a step");
    settings_.batch_size = all;
  }

  /// Unless the user gives a size, an evaluation has no more samples at a time than a worker's training step, so that
  /// it needs no more memory. With --ist-eval batch the size decides how good the statistics are, and stays.
  void settle_eval_batch_size() {
    const bool statistics = settings_.method == TrainingMethod::ist && settings_.ist_eval == SubnetEvaluation::batch;
    if (is_given("eval-batch-size") || statistics) return;
    const int64_t trained = samples_per_rank(settings_, static_cast<int>(settings_.workers.value_or(1)));
    settings_.eval_batch_size = std::min(settings_.eval_batch_size, std::max(kLeastEvalBatch, trained));
  }

  /// Whether the command line or the configuration file gives the flag.
  bool is_given(const std::string& flag) const { return app_.get_option("--" + flag)->count() > 0; }

  /// The lines of the configuration file that set the flags in `message`: " (--lr: run.ini, line 3)".
  std::string lines_of_flags_in(const std::string& message) const {
    std::string text;
    for (const auto& [flag, line] : config_lines_)
      if (speaks_of(message, flag) && !overruled(*app_.get_option(flag)))
        text += join({text.empty() ? " (" : "; ", flag, ": ", config_, ", line ", line});
    return text.empty() ? "" : text + ")";
  }

  void refuse_without_effect() {
    visit_flags(settings_, [&](const Flag& flag, auto&) {
      if (!flag.offered || !is_given(flag.name)) return;
      const std::string reason = reason_without_effect(flag, settings_);
      const auto used = given_.find(app_.get_option(join({"--", flag.name})));
      check_input(reason.empty(), used == given_.end() ? join({"--", flag.name}) : used->second,
                  " would change nothing: ", reason);
    });
  }

  const Application& application_;
  TrainSettings settings_;
  CLI::App app_;
  std::map<const CLI::Option*, std::string> given_;  ///< flags of the command line, and the names that were used
  std::string config_;
  std::map<std::string, int> config_lines_;  ///< line numbers, by flag
  bool print_config_ = false;
  bool print_version_ = false;
};

}  // namespace

Invocation read_flags(int argc, const char* const* argv, const Application& application) {
  return CommandLine(application, argc, argv).read(argc, argv);
}

std::string config_text(const TrainSettings& settings) {
  std::string text;
  std::string_view group;
  visit_flags(settings, [&](const Flag& flag, const auto& field) {
    if (!flag.offered) return;
    if (flag.group != group) text += (text.empty() ? "# " : "\n# ") + std::string(group = flag.group) + '\n';
    const std::string value = write_value(field);
    const bool follows =
        std::string_view(flag.name) == "batch-size" && settings.local_batch_size;  // with other workers, it changes
    const bool silent = value.empty() || follows || !reason_without_effect(flag, settings).empty();
    text += (silent ? "# " : "") + std::string(flag.name) + '=' + value + '\n';
  });
  for (const auto& [flag, value] : settings.choices) text += flag + '=' + write_value(value) + '\n';
  for (const auto& [flag, value] : settings.counts) text += flag + '=' + write_value(value) + '\n';
  return text;
}

}  // namespace tern::trainer
