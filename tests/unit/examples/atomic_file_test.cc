#include "atomic_file.h"

#include <gtest/gtest.h>

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
