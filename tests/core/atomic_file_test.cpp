#include "tern/core/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "tern/core/error.h"
#include "tests/support/disk_calls.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(bytes_of(text));
  file.commit();
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  return names;
}

/// While it exists, this process can write no file beyond `bytes`. This acts like a full disk, but the system reports
/// another error.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit{bytes, previous_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit previous_{};
  void (*handler_)(int);
};

TEST(AtomicFile, ReplacesWholeAndLeavesNoOtherFile) {
  const TemporaryFolder folder;
  write(folder.path() / "a", "old");
  write(folder.path() / "a", "the new one");
  EXPECT_EQ(read_file(folder.path() / "a"), "the new one");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(AtomicFile, RewritesInPlace) {
  const TemporaryFolder folder;
  AtomicFile file(folder.path() / "a");
  file.write(bytes_of("0123"));
  file.write(bytes_of("4567"));
  file.rewrite(3, bytes_of("ab"));
  EXPECT_THROW(file.rewrite(7, bytes_of("ab")), Error);
  file.commit();
  EXPECT_EQ(read_file(folder.path() / "a"), "012ab567");
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  const TemporaryFolder folder;
  write(folder.path() / "a", "old");
  { AtomicFile(folder.path() / "a").write(bytes_of("new")); }
  EXPECT_EQ(read_file(folder.path() / "a"), "old");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(AtomicFile, WhereTheDiskIsFullTheOldFileStays) {
  const TemporaryFolder folder;
  write(folder.path() / "a", "old");
  const std::string message = message_of<InputError>([&] {
    const FileSizeLimit limit(4096);
    write(folder.path() / "a", std::string(10000, 'x'));
  });
  EXPECT_EQ(message, (folder.path() / "a").string() + ": writing failed: File too large");
  EXPECT_EQ(read_file(folder.path() / "a"), "old");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(AtomicFile, NamesThePathAndTheReasonItCannotBeWritten) {
  const TemporaryFolder folder;
  const auto error = [](const fs::path& path) { return message_of<InputError>([&] { check_writable(path); }); };
  EXPECT_EQ(error(folder.path() / "none/a"),
            (folder.path() / "none/a").string() + ": cannot be written: No such file or directory");
  EXPECT_EQ(error(folder.path()),
            folder.path().string() + ": cannot be written: it is a folder, expected a regular file or none");
  EXPECT_EQ(error("/dev/null"), "/dev/null: cannot be written: it is a special file, expected a regular file or none");
  EXPECT_EQ(error(folder.path() / "a"), "");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(AtomicFile, AFolderIsTriedAndLeftAsItWas) {
  const TemporaryFolder folder;
  const auto error = [](const fs::path& path) { return message_of<InputError>([&] { check_writable_folder(path); }); };
  EXPECT_EQ(error(folder.path()), "");
  EXPECT_EQ(error(folder.path() / "new/run/"), "");
  EXPECT_TRUE(names_in(folder.path()).empty());
  const fs::path longer = folder.path() / "new" / std::string(300, 'x');
  EXPECT_EQ(error(longer), longer.string() + ": no folder can be made there: File name too long");
  EXPECT_TRUE(names_in(folder.path()).empty());
  write_file(folder.path() / "file", "");
  EXPECT_EQ(error(folder.path() / "file"),
            (folder.path() / "file").string() + ": no folder can be made there: Not a directory");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"file"});
}

TEST(AtomicFile, WithoutPermission) {
  constexpr uid_t kNobody = 65534;
  const uid_t user = ::geteuid();
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_exec);
  ASSERT_EQ(::seteuid(user == 0 ? kNobody : user), 0);  // the superuser may write everywhere
  const std::string said = message_of<InputError>([&] { check_writable(folder.path() / "a"); });
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_EQ(said, (folder.path() / "a").string() + ": cannot be written: Permission denied");
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST(AtomicFile, FollowsASymbolicLink) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "elsewhere");
  write(folder.path() / "elsewhere/a", "old");
  fs::create_symlink("elsewhere/a", folder.path() / "link");
  write(folder.path() / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(read_file(folder.path() / "elsewhere/a"), "new");
}

TEST(AtomicFile, FollowsLinksToAFileThatIsMissing) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "elsewhere");
  fs::create_symlink("second", folder.path() / "first");
  fs::create_symlink(folder.path() / "elsewhere/a", folder.path() / "second");
  write(folder.path() / "first", "new");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "first"));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "second"));
  EXPECT_EQ(read_file(folder.path() / "elsewhere/a"), "new");
}

TEST(AtomicFile, RefusesALinkToItself) {
  const TemporaryFolder folder;
  const fs::path self = folder.path() / "self";
  fs::create_symlink("self", self);
  EXPECT_EQ(message_of<InputError>([&] { AtomicFile file(self); }),
            self.string() + ": cannot be written: Too many levels of symbolic links");
}

// An attacker must not be able to guess the name of a temporary file. Here a link to a valuable file has a name that is
// easy to guess.
TEST(AtomicFile, APlantedLinkEmptiesNoOtherFile) {
  const TemporaryFolder folder;
  write_file(folder.path() / "value", "of value");
  const fs::path guessed = folder.path() / ("a.tmp-" + std::to_string(::getpid()));
  fs::create_symlink("value", guessed);
  write(folder.path() / "a", "new");
  EXPECT_EQ(read_file(folder.path() / "value"), "of value");
  EXPECT_EQ(read_file(folder.path() / "a"), "new");
  EXPECT_TRUE(fs::is_symlink(guessed));
}

TEST(AtomicFile, ASecondWriterOfTheSameFileDisturbsNeither) {
  const TemporaryFolder folder;
  AtomicFile one(folder.path() / "a"), other(folder.path() / "a");
  one.write(bytes_of("the first one"));
  other.write(bytes_of("the other"));
  one.commit();
  EXPECT_EQ(read_file(folder.path() / "a"), "the first one");
  other.commit();
  EXPECT_EQ(read_file(folder.path() / "a"), "the other");
}

TEST(AtomicFile, RemovesWhatKilledWritersOfTheSameFileLeft) {
  const TemporaryFolder folder;
  const std::string id = "0123456789abcdef";
  for (const char* name : {"a.tmp-", "b.tmp-", "a.b.tmp-"}) write_file(folder.path() / (name + id), "half");
  write_file(folder.path() / "a.tmp-mine", "not a temporary file");
  const AtomicFile living(folder.path() / "a");
  auto names = names_in(folder.path());
  EXPECT_EQ(std::ranges::count(names, "a.tmp-" + id), 0);
  EXPECT_EQ(names.size(), 4u);
  const AtomicFile other(folder.path() / "a");
  EXPECT_EQ(names_in(folder.path()).size(), 5u) << "the first one still writes";
}

TEST(AtomicFile, SyncsTheFileThenItsName) {
  const TemporaryFolder folder;
  const DiskCalls calls;
  write(folder.path() / "a", "new");
  const std::string file = (folder.path() / "a").string();
  const auto found = DiskCalls::found();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(found[0].starts_with("sync " + file + ".tmp-")) << found[0];
  EXPECT_EQ(found[1], "rename " + file);
  EXPECT_EQ(found[2], "sync " + folder.path().string());
}

TEST(AtomicFile, SyncsTheParentOfEachNewFolder) {
  const TemporaryFolder folder;
  const std::string top = folder.path().string();
  const DiskCalls calls;
  EXPECT_TRUE(make_folder(folder.path() / "new/run/"));
  EXPECT_EQ(DiskCalls::found(), (std::vector<std::string>{"sync " + top, "sync " + top + "/new"}));
  EXPECT_TRUE(fs::is_directory(folder.path() / "new/run"));
  EXPECT_FALSE(make_folder(folder.path() / "new/run"));
  EXPECT_EQ(DiskCalls::found().size(), 2u);
  write_file(folder.path() / "file", "");
  EXPECT_EQ(message_of<InputError>([&] { make_folder(folder.path() / "file"); }),
            top + "/file: no folder can be made there: File exists");
}

}  // namespace
}  // namespace tern
