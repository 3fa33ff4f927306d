#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tern/apps/trainer/flag_value.h"
#include "tern/core/error.h"

namespace tern {

/// An option of `app` whose words read_value reads into `field`, which outlives it; an InputError begins with the flag.
template <class T>
void add_value_option(CLI::App& app, const std::string& flag, const std::string& value, T& field,
                      const std::string& help) {
  const CLI::callback_t read = [flag, &field](const CLI::results_t& words) {
    try {
      read_value(words, field);
    } catch (const InputError& error) {
      throw InputError(flag + ": " + error.what());
    }
    return true;
  };
  app.add_option(flag, read, help)->type_name(value);
}

}  // namespace tern
