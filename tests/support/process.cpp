#include "process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "tern/core/program.h"

namespace tern {
namespace {

std::string contents(std::FILE* file) {
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  return text;
}

}  // namespace

std::string built_program(const std::string& name) {
  return std::filesystem::path(program_folder()).parent_path() / "apps" / name;
}

Process::Process(const std::vector<std::string>& arguments, Streams streams)
    : out_(std::tmpfile()), err_(std::tmpfile()) {
  std::vector<char*> words;
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  id_ = fork();
  if (id_ < 0) throw std::runtime_error("fork failed");
  if (id_ > 0) return;
  dup2(streams.out < 0 ? fileno(out_) : streams.out, STDOUT_FILENO);
  dup2(streams.err < 0 ? fileno(err_) : streams.err, STDERR_FILENO);
  execv(words[0], words.data());
  _exit(127);
}

Process::~Process() {
  if (!ended_) {
    kill(id_, SIGKILL);
    waitpid(id_, &status_, 0);
  }
  std::fclose(out_);
  std::fclose(err_);
}

void Process::send(int signal) const { kill(id_, signal); }

bool Process::running() {
  if (!ended_) ended_ = waitpid(id_, &status_, WNOHANG) == id_;
  return !ended_;
}

bool Process::ends_within(std::chrono::seconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (running() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return ended_;
}

Outcome Process::wait() {
  if (!ended_) waitpid(id_, &status_, 0);
  ended_ = true;
  const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  return {code, contents(out_), contents(err_)};
}

}  // namespace tern
