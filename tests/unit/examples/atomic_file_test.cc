#include "atomic_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <system_error>

#include "errors.h"
#include "example_files.h"

namespace fashion_mnist {
namespace {

TEST(AtomicFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string content("a\0b\n", 4);
  EXPECT_EQ(read_file(folder / "c"), std::nullopt);
  replace_file(folder / "c", "before");
  replace_file(folder / "c", content);
  EXPECT_EQ(read_file(folder / "c"), content);
  EXPECT_FALSE(std::filesystem::exists(folder / "c.tmp"));
}

TEST(AtomicFile, KeepsTheOldContentWhenTheNewCannotBeWritten) {
  const TemporaryFolder folder;
  replace_file(folder / "c", "old");
  std::filesystem::create_directory(folder / "c.tmp");  // nothing can be created there
  EXPECT_THROW(replace_file(folder / "c", "new"), std::system_error);
  EXPECT_EQ(read_file(folder / "c"), "old");
}

TEST(AtomicFile, SaysBeforehandThatAFolderIsMissing) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(check_replaceable(folder / "c"));
  EXPECT_NO_THROW(check_replaceable("c"));
  EXPECT_THROW(check_replaceable(folder / "none" / "c"), std::system_error);
}

TEST(AtomicFile, SaysBeforehandThatTheFileIsAFolder) {
  const TemporaryFolder folder;
  const std::filesystem::path inside = folder / "c";
  std::filesystem::create_directory(inside);
  for (const std::filesystem::path& path : {inside, inside / "", folder / "new" / "", std::filesystem::path(".")}) {
    EXPECT_EQ(text_of<std::system_error>([&] { check_replaceable(path); }),
              "cannot write '" + path.string() + "': Is a directory");
  }
}

/// While it lives this process cannot write more than `bytes` into a file.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : ignored_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, ignored_);
  }

 private:
  sighandler_t ignored_;
  rlimit before_{};
};

TEST(AtomicFile, LeavesNothingBehindOnAFullDisk) {
  const TemporaryFolder folder;
  replace_file(folder / "c", "old");
  {
    const FullDisk full(4096);
    EXPECT_THROW(replace_file(folder / "c", std::string(100'000, 'x')), std::system_error);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "c.tmp"));
  EXPECT_EQ(read_file(folder / "c"), "old");
}

TEST(AtomicFile, LeavesNothingBehindWhereItCannotBeRenamed) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "c");
  EXPECT_THROW(replace_file(folder / "c", "new"), std::system_error);
  EXPECT_FALSE(std::filesystem::exists(folder / "c.tmp"));
}

TEST(AtomicFile, SeesEveryTear) {
  const TemporaryFolder folder;
  replace_file(folder / "c", "some state");
  const std::string whole = read_bytes(folder / "c");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_bytes(folder / "c", whole.substr(0, size));
    EXPECT_THROW(read_file(folder / "c"), DataError) << "cut to " << size << " bytes";
  }
}

TEST(AtomicFile, SeesEveryChangedByte) {
  const TemporaryFolder folder;
  replace_file(folder / "c", "some state");
  const std::string whole = read_bytes(folder / "c");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    write_bytes(folder / "c", changed);
    EXPECT_THROW(read_file(folder / "c"), DataError) << "byte " << i;
  }
}

TEST(AtomicFile, NamesTheFileThatIsDamaged) {
  const TemporaryFolder folder;
  write_bytes(folder / "c", "checkpt1 and no more");
  EXPECT_EQ(text_of<DataError>([&] { read_file(folder / "c"); }),
            "checkpoint '" + (folder / "c").string() + "' is damaged: length or checksum is wrong");
  write_bytes(folder / "c", "text");
  EXPECT_EQ(text_of<DataError>([&] { read_file(folder / "c"); }),
            "'" + (folder / "c").string() + "' is not a checkpoint of this program");
}

}  // namespace
}  // namespace fashion_mnist
