#include "tern/dist/comm/token.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <set>

#include "tern/core/error.h"
#include "tests/dist/comm/job.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern::test {
namespace {

namespace fs = std::filesystem;

/// Sets an environment variable, or removes it if `value` is null. The destructor restores it.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~EnvironmentVariable() { set(before_ ? before_->c_str() : nullptr); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  void set(const char* value) const {
    if (value)
      ::setenv(name_, value, 1);
    else
      ::unsetenv(name_);
  }

  const char* name_;
  std::optional<std::string> before_;
};

TEST(Token, ComesFromAPrivateFile) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "token";
  write_file(path, kJobToken + "\n");
  ::chmod(path.c_str(), 0644);
  EXPECT_TRUE(names(message_of<InputError>([&] { read_token(path); }), "0600"));
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(read_token(path), kJobToken);
  write_file(path, "short");
  ::chmod(path.c_str(), 0600);
  EXPECT_TRUE(names(message_of<InputError>([&] { read_token(path); }), "5 characters"));
  EXPECT_TRUE(names(message_of<InputError>([&] { read_token(folder.path() / "none"); }), "No such file"));
  if (::geteuid() != 0) return;  // only root can give files to another user
  write_file(path, kJobToken + "\n");
  ::chmod(path.c_str(), 0600);
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(names(message_of<InputError>([&] { read_token(path); }), "belongs to user 65534, expected user 0"));
}

TEST(Token, ComesFromNoFifo) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "token";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(names(message_of<InputError>([&] { read_token(path); }), "is in no regular file"));
  EXPECT_TRUE(names(message_of<InputError>([&] { read_token("/dev/zero"); }), "is in no regular file"));
}

/// A user without tokens. All folders of this user are in `folder_`.
class TokenOfMachine : public testing::Test {
 protected:
  fs::path place() const { return folder_.path() / "tern-token"; }
  static std::string refusal() {
    return message_of<InputError>([] { token_of_machine(); });
  }
  static mode_t mode_of(const fs::path& path) {
    struct stat status = {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 0777;
  }

  TemporaryFolder folder_;
  EnvironmentVariable token_{"TERN_TOKEN", nullptr}, file_{"TERN_TOKEN_FILE", nullptr};
  EnvironmentVariable runtime_{"XDG_RUNTIME_DIR", folder_.path().c_str()}, home_{"HOME", folder_.path().c_str()};
};

TEST_F(TokenOfMachine, IsTheSameForAllWhoComeAtOnce) {
  constexpr int kRanks = 16;
  std::vector<JobToken> tokens(kRanks);
  const auto errors = on_ranks(kRanks, [&](int rank) { tokens[static_cast<size_t>(rank)] = token_of_machine(); });
  EXPECT_EQ(errors, std::vector<std::string>(kRanks));
  EXPECT_EQ(std::set<JobToken>(tokens.begin(), tokens.end()).size(), 1u);
  EXPECT_EQ(tokens[0].size(), 64u);
  EXPECT_EQ(read_token(place()), tokens[0]);
  EXPECT_EQ(mode_of(place()), 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "no draft is left";
}

TEST_F(TokenOfMachine, IsTheEnvironmentsIfThatHasOne) {
  const EnvironmentVariable given("TERN_TOKEN", kJobToken.c_str());
  EXPECT_EQ(token_of_machine(), kJobToken);
  EXPECT_FALSE(fs::exists(place()));
}

TEST_F(TokenOfMachine, IsInTheCacheIfThereIsNoRuntimeFolder) {
  const fs::path other = folder_.path() / "open";
  fs::create_directory(other);
  ::chmod(other.c_str(), 0777);
  for (const char* runtime : {static_cast<const char*>(nullptr), "/nowhere", other.c_str()}) {
    const EnvironmentVariable without("XDG_RUNTIME_DIR", runtime);
    const JobToken token = token_of_machine();
    EXPECT_EQ(token, read_token(folder_.path() / ".cache/tern/token"));
  }
  EXPECT_EQ(mode_of(folder_.path() / ".cache/tern"), 0700u);
  const EnvironmentVariable no_runtime("XDG_RUNTIME_DIR", nullptr), no_home("HOME", nullptr);
  EXPECT_TRUE(names(refusal(), "neither XDG_RUNTIME_DIR nor HOME names a folder")) << refusal();
}

TEST_F(TokenOfMachine, IsRefusedIfAnotherCouldHaveMadeIt) {
  const auto expect_refused = [](const std::string& why) { EXPECT_TRUE(names(refusal(), why)) << refusal(); };
  write_file(place(), kJobToken);
  ::chmod(place().c_str(), 0640);
  expect_refused("0600");
  fs::rename(place(), folder_.path() / "real");
  ::chmod((folder_.path() / "real").c_str(), 0600);
  fs::create_symlink("real", place());
  expect_refused("cannot be read");
  fs::remove(place());
  ASSERT_EQ(::mkfifo(place().c_str(), 0600), 0);
  expect_refused("is in no regular file");
  fs::remove(place());
  if (::geteuid() != 0) return;  // only root can give files to another user
  write_file(place(), kJobToken);
  ::chmod(place().c_str(), 0600);
  ASSERT_EQ(::chown(place().c_str(), 65534, 65534), 0);
  expect_refused("belongs to user 65534, expected user 0");
}

}  // namespace
}  // namespace tern::test
