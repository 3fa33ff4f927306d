#include "tern/apps/trainer/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tern/apps/trainer/config_file.h"
#include "tern/apps/trainer/datasets.h"
#include "tern/apps/trainer/flag_table.h"
#include "tern/apps/trainer/flag_value.h"
#include "tern/apps/trainer/machine.h"
#include "tern/apps/trainer/suggestion.h"
#include "tern/core/error.h"

namespace tern {
namespace {

std::string listed(const auto& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : "|") + std::string(word);
  return text;
}

/// As the help shows it: without the quotes of a configuration file.
std::string shown_default(const auto& field) { return write_value(field); }
std::string shown_default(const std::string& field) { return field; }

/// Defaults stand behind the description, in brackets.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(30); }
  std::string make_option_name(const CLI::Option* option, bool) const override {
    return option->check_lname("no-shuffle") ? "--shuffle,--no-shuffle" : option->get_name(false, true);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : ' ' + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string& value = option->get_default_str();
    return option->get_description() + (value.empty() ? "" : join({" [", value, "]"}));
  }
};

void check_word(const std::string& word, const auto& allowed) {
  check_input(std::ranges::find(allowed, word) != std::end(allowed), "found '", word, "', expected ", listed(allowed));
}

/// The settings of one command line, bound to CLI11's parser.
class CommandLine {
 public:
  explicit CommandLine(const Application& application) : application_(application) {
    settings_ = application.defaults;
    app_.name(application.name);
    app_.description("Trains a model, evaluates it, and writes down what happened.");
    app_.formatter(std::make_shared<HelpFormatter>());
    app_.config_formatter(std::make_shared<ConfigFile>());
    app_.allow_extras();
    app_.allow_config_extras(CLI::config_extras_mode::capture);
    visit_flags(settings_, [&](const Flag& flag, auto& field) { add(flag, field); });
    for (const Choice& choice : application.choices) add_choice(choice);
    app_.set_config("--config", "", "Read flags from this file")->group("Program")->type_name("FILE");
    app_.add_flag("--print-config", print_config_, "Print the settings as such a file")->group("Program");
    app_.add_flag("--version", print_version_, "Print the versions of tern and what it uses")->group("Program");
    app_.set_help_flag("--help,-h", "Print this help")->group("Program");
  }

  Invocation read(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return {.settings = {}, .run = false, .text = app_.help()};
    } catch (const CLI::ParseError& error) {
      throw InputError(error.what());
    }
    if (print_version_) return {.settings = {}, .run = false, .text = version_text(application_.name)};
    refuse_unknown();
    validate(settings_);
    refuse_without_effect();
    if (print_config_) return {.settings = {}, .run = false, .text = config_text(settings_)};
    return {.settings = settings_, .run = true, .text = {}};
  }

 private:
  void add(const Flag& flag, bool& field) {
    const std::string name = std::string("--") + flag.name;
    app_.add_flag(field ? name + ",!--no-" + flag.name : name, field, flag.help)
        ->group(flag.group)
        ->default_str(field ? "on" : "");
  }

  template <class T>
  void add(const Flag& flag, T& field) {
    const std::string name = std::string("--") + flag.name;
    const CLI::callback_t read = [name, words = flag.words, &field](const CLI::results_t& results) {
      try {
        read_value(results, field);
        if constexpr (std::is_same_v<T, std::string>)
          if (!words.empty()) check_word(field, words);
      } catch (const InputError& error) {
        throw InputError(name + ": " + error.what());
      }
      return true;
    };
    auto* option = app_.add_option(name, read, flag.help)->group(flag.group);
    option->type_name(flag.words.empty() ? flag.value : listed(flag.words))->default_str(shown_default(field));
    if constexpr (std::is_same_v<T, std::vector<int64_t>>)
      option->delimiter(',')->expected(1, 1 << 20);
    else if constexpr (std::is_same_v<T, std::vector<std::string>>)
      option->expected(1, 1 << 20);
    else
      option->take_last();
  }

  void add_choice(const Choice& choice) {
    std::string& field = settings_.choices[choice.flag] = choice.values.front();
    const CLI::callback_t read = [&choice, &field](const CLI::results_t& results) {
      field = results.back();
      check_input(std::ranges::find(choice.values, field) != choice.values.end(), "--", choice.flag, ": found '", field,
                  "', expected ", listed(choice.values));
      return true;
    };
    app_.add_option("--" + choice.flag, read, choice.help)
        ->group("Model")
        ->type_name(listed(choice.values))
        ->default_str(field)
        ->take_last();
  }

  void refuse_unknown() const {
    const std::vector<std::string> unknown = app_.remaining();
    if (unknown.empty()) return;
    std::vector<std::string> names;
    for (const CLI::Option* option : app_.get_options()) names.push_back(option->get_name());
    const std::string word = unknown.front().substr(0, unknown.front().find('='));
    throw InputError("unknown argument '" + word + "'" + suggestion(word, names));
  }

  void refuse_without_effect() {
    visit_flags(settings_, [&](const Flag& flag, auto&) {
      if (app_.get_option(std::string("--") + flag.name)->count() == 0) return;
      const std::string reason = reason_without_effect(flag.name, settings_);
      check_input(reason.empty(), "--", flag.name, " would change nothing: ", reason);
    });
  }

  const Application& application_;
  TrainSettings settings_;
  CLI::App app_;
  bool print_config_ = false;
  bool print_version_ = false;
};

}  // namespace

Invocation read_flags(int argc, const char* const* argv, const Application& application) {
  return CommandLine(application).read(argc, argv);
}

std::string config_text(const TrainSettings& settings) {
  std::string text;
  std::string_view group;
  visit_flags(settings, [&](const Flag& flag, const auto& field) {
    if (flag.group != group) text += (text.empty() ? "# " : "\n# ") + std::string(group = flag.group) + '\n';
    const std::string value = write_value(field);
    const bool silent = value.empty() || !reason_without_effect(flag.name, settings).empty();
    text += (silent ? "# " : "") + std::string(flag.name) + '=' + value + '\n';
  });
  for (const auto& [flag, value] : settings.choices) text += flag + '=' + write_value(value) + '\n';
  return text;
}

}  // namespace tern
