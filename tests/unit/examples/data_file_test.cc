#include "data_file.h"

#include <gtest/gtest.h>

#include "errors.h"
#include "example_files.h"

namespace fashion_mnist {
namespace {

std::string read_text(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = read_data_file(path);
  return {bytes.begin(), bytes.end()};
}

std::string refusal(const std::filesystem::path& path) {
  return text_of<DataError>([&] { read_data_file(path); });
}

TEST(DataFile, ReadsPlainAndCompressedFilesAlike) {
  const TemporaryFolder folder;
  const std::string content(3'000'000, 'x');  // more than one chunk
  write_bytes(folder / "plain", content);
  write_gzip(folder / "packed.gz", content);
  EXPECT_EQ(read_text(folder / "plain"), content);
  EXPECT_EQ(read_text(folder / "packed.gz"), content);
}

TEST(DataFile, NamesAFileThatIsCutOff) {
  const TemporaryFolder folder;
  std::string random;
  for (unsigned i = 0; i < 10'000; ++i) random += static_cast<char>(i * i >> 3);
  write_gzip(folder / "a.gz", random);
  const std::string whole = read_bytes(folder / "a.gz");
  for (const std::size_t size : {whole.size() / 2, whole.size() - 1}) {
    write_bytes(folder / "a.gz", whole.substr(0, size));
    EXPECT_EQ(refusal(folder / "a.gz"),
              "'" + (folder / "a.gz").string() + "' is cut off: its compressed data ends too early");
  }
}

TEST(DataFile, NamesAFileThatIsDamaged) {
  const TemporaryFolder folder;
  write_gzip(folder / "a.gz", "some text that will not be what it was");
  std::string bytes = read_bytes(folder / "a.gz");
  bytes[bytes.size() - 6] ^= 1;  // in the checksum
  write_bytes(folder / "a.gz", bytes);
  EXPECT_EQ(refusal(folder / "a.gz"), "'" + (folder / "a.gz").string() + "' is damaged: it cannot be unpacked");
}

TEST(DataFile, SaysWhyItCannotRead) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal(folder / "none"), "cannot open '" + (folder / "none").string() + "': No such file or directory");
  EXPECT_EQ(refusal(folder.path()), "cannot read '" + folder.path().string() + "': Is a directory");
}

TEST(DataFile, PrefersThePlainFileAndNamesThePackageWhenThereIsNone) {
  const TemporaryFolder folder;
  EXPECT_EQ(text_of<DataError>([&] { find_data_file(folder.path(), "a"); }),
            "no file '" + (folder / "a.gz").string() +
                "': install the package 'dataset-fashion-mnist', or name the folder that has it with --data");
  write_bytes(folder / "a.gz", "");
  EXPECT_EQ(find_data_file(folder.path(), "a"), folder / "a.gz");
  write_bytes(folder / "a", "");
  EXPECT_EQ(find_data_file(folder.path(), "a"), folder / "a");
}

}  // namespace
}  // namespace fashion_mnist
