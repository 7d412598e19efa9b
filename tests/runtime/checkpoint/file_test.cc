#include "runtime/checkpoint/file.h"

#include <gtest/gtest.h>
#include <lrun/checkpoint.h>
#include <lrun/error.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>
#include <system_error>

#include "base/fd.h"
#include "support/full_disk.h"
#include "support/temporary_folder.h"

namespace lrun::detail {
namespace {

using test::FullDisk;
using test::TemporaryFolder;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Why a checkpoint is refused; 'read' or 'nothing' when it is not.
std::string refusal(const std::filesystem::path& path) {
  try {
    return read_checkpoint(path) ? "read" : "nothing";
  } catch (const CheckpointError& error) {
    return error.what();
  }
}

template <class Exception, class Function>
std::string text_of(const Function& function) {
  try {
    function();
    return "nothing was thrown";
  } catch (const Exception& error) {
    return error.what();
  }
}

TEST(CheckpointFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_checkpoint(folder / "c"), std::nullopt);
  write_checkpoint(folder / "c", "before");
  const Checkpoint written{7, std::string("a\0b\n", 4)};
  write_checkpoint(folder / "c", written.content, written.step);
  EXPECT_EQ(read_checkpoint(folder / "c"), written);
  write_checkpoint(folder / "c", "");
  EXPECT_EQ(read_checkpoint(folder / "c"), Checkpoint());
  EXPECT_FALSE(std::filesystem::exists(folder / "c.tmp"));
}

TEST(CheckpointFile, IsCheckedInPieces) {
  const TemporaryFolder folder;
  std::string content((std::size_t{5} << 20) / 2, 'x');
  write_checkpoint(folder / "c", content);
  const auto header = check_checkpoint_file(folder / "c");
  ASSERT_TRUE(header);
  EXPECT_EQ(header->content_size, content.size());
  std::string bytes = bytes_of(folder / "c");
  bytes.back() = 'y';
  put(folder / "c", bytes);
  EXPECT_THROW(check_checkpoint_file(folder / "c"), CheckpointError);
}

TEST(CheckpointFile, KeepsTheOldContentWhenTheNewCannotBeWritten) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "c", "old");
  std::filesystem::create_directory(folder / "c.tmp");  // nothing can be created there
  EXPECT_THROW(write_checkpoint(folder / "c", "new"), std::system_error);
  EXPECT_EQ(read_checkpoint(folder / "c")->content, "old");
}

TEST(CheckpointFile, LeavesNothingBehindOnAFullDisk) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "c", "old");
  {
    const FullDisk full(4096);
    EXPECT_EQ(text_of<std::system_error>([&] { write_checkpoint(folder / "c", std::string(100'000, 'x')); }),
              "cannot write '" + (folder / "c.tmp").string() + "': File too large");
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "c.tmp"));
  EXPECT_EQ(read_checkpoint(folder / "c")->content, "old");
}

TEST(CheckpointFile, LeavesNothingBehindWhereItCannotBeRenamed) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "c");
  EXPECT_THROW(write_checkpoint(folder / "c", "new"), std::system_error);
  EXPECT_FALSE(std::filesystem::exists(folder / "c.tmp"));
}

TEST(CheckpointFile, SaysBeforehandWhereItCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(require_checkpoint_path(folder / "c"));
  EXPECT_NO_THROW(require_checkpoint_path("c"));
  EXPECT_THROW(require_checkpoint_path(folder / "none" / "c"), std::system_error);
  const std::filesystem::path inside = folder / "c";
  std::filesystem::create_directory(inside);
  for (const std::filesystem::path& path : {inside, inside / "", folder / "new" / "", std::filesystem::path(".")}) {
    EXPECT_EQ(text_of<std::system_error>([&] { require_checkpoint_path(path); }),
              "cannot write '" + path.string() + "': Is a directory");
  }
}

TEST(CheckpointFile, IsNotPutInThePlaceOfAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::string why = "cannot write a checkpoint over the device, pipe or socket '" + (folder / "pipe").string() +
                          "': Invalid argument";
  EXPECT_EQ(text_of<std::system_error>([&] { write_checkpoint(folder / "pipe", "state"); }), why);
  EXPECT_EQ(text_of<std::system_error>([&] { require_checkpoint_path(folder / "pipe"); }), why);
  EXPECT_EQ(text_of<std::system_error>([] { require_checkpoint_path("/dev/null"); }),
            "cannot write a checkpoint over the device, pipe or socket '/dev/null': Invalid argument");
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
}

TEST(CheckpointFile, IsWrittenWhereASymbolicLinkLeads) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "other");
  std::filesystem::create_symlink("other/c", folder / "link");
  EXPECT_EQ(text_of<std::system_error>([&] { require_checkpoint_path(folder / "link"); }),
            "cannot write through the symbolic link '" + (folder / "link").string() + "': No such file or directory");
  write_checkpoint(folder / "other" / "c", "old");
  EXPECT_NO_THROW(require_checkpoint_path(folder / "link"));
  write_checkpoint(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_checkpoint(folder / "other" / "c")->content, "new");
}

TEST(CheckpointFile, SeesEveryTearAndEveryChangedByte) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "c", "some state");
  const std::string whole = bytes_of(folder / "c");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(folder / "c", whole.substr(0, size));
    ASSERT_THROW(read_checkpoint(folder / "c"), CheckpointError) << "cut to " << size << " bytes";
    std::string changed = whole;
    changed[size] = static_cast<char>(changed[size] ^ 1);
    put(folder / "c", changed);
    ASSERT_THROW(read_checkpoint(folder / "c"), CheckpointError) << "byte " << size;
  }
}

TEST(CheckpointFile, NamesTheFileAndSaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string begin = "checkpoint '" + (folder / "c").string() + "' cannot be used: ";
  write_checkpoint(folder / "c", "some state");
  const std::string whole = bytes_of(folder / "c");
  put(folder / "c", whole.substr(0, 70));
  EXPECT_EQ(refusal(folder / "c"), begin + "it is cut off: 6 of 10 bytes");
  put(folder / "c", whole.substr(0, 73) + "?");
  EXPECT_EQ(refusal(folder / "c"), begin + "its content is damaged: the checksum is wrong");
  put(folder / "c", "text");
  EXPECT_EQ(refusal(folder / "c"), begin + "it is not a checkpoint of liblrun");
  std::filesystem::remove(folder / "c");
  std::filesystem::create_directory(folder / "c");
  EXPECT_EQ(refusal(folder / "c"), begin + "it is no file");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal(folder / "pipe").find("it is no file"), std::string::npos) << "waits for nobody";
}

/// Writes checkpoints of its own, one after the other, and a byte into `told` for each.
[[noreturn]] void write_for_ever(const std::filesystem::path& path, int told) {
  for (std::uint64_t step = 1;; ++step) {
    write_checkpoint(path, std::string(50'000 + step % 7, static_cast<char>(step)), step);
    if (::write(told, "x", 1) != 1) ::_exit(1);
  }
}

TEST(CheckpointFile, IsWholeWheneverItsWriterIsKilled) {
  const TemporaryFolder folder;
  std::minstd_rand random(1);
  for (int round = 0; round < 20; ++round) {
    Pipe pipe = make_pipe();
    const pid_t writer = ::fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) write_for_ever(folder / "c", pipe.write.get());
    pipe.write.reset();
    char byte = 0;
    ASSERT_EQ(::read(pipe.read.get(), &byte, 1), 1);
    for (auto turns = random() % 200'000; turns > 0; --turns) asm volatile("");  // a moment of some save
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    const auto found = read_checkpoint(folder / "c");
    ASSERT_TRUE(found) << "round " << round;
    ASSERT_EQ(found->content, std::string(50'000 + found->step % 7, static_cast<char>(found->step)));
  }
}

}  // namespace
}  // namespace lrun::detail
