#include "data_file.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "errors.h"

namespace fashion_mnist {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 30;
constexpr std::size_t kChunk = std::size_t{1} << 20;

struct Close {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, Close>;

std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

[[noreturn]] void fail(gzFile file, const std::filesystem::path& path) {
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  if (code == Z_ERRNO) throw DataError("cannot read " + quoted(path) + ": " + std::strerror(errno));
  // zlib calls this a "buffer error"; nobody would guess what that means.
  if (code == Z_BUF_ERROR) throw DataError(quoted(path) + " is cut off: its compressed data ends too early");
  if (code == Z_DATA_ERROR) throw DataError(quoted(path) + " is damaged: it cannot be unpacked");
  throw DataError(std::string("cannot read ") + text);  // begins with the path
}

}  // namespace

std::vector<std::uint8_t> read_data_file(const std::filesystem::path& path) {
  errno = 0;
  const GzFile file(gzopen(path.c_str(), "rbe"));  // reads plain files too; 'e' is close-on-exec
  if (!file) throw DataError("cannot open " + quoted(path) + ": " + std::strerror(errno != 0 ? errno : ENOMEM));
  gzbuffer(file.get(), 1 << 17);

  std::vector<std::uint8_t> content;
  while (true) {
    const std::size_t begin = content.size();
    if (begin > kLargestFile) throw DataError(quoted(path) + " is larger than 1 GiB");
    content.resize(begin + kChunk);
    const int count = gzread(file.get(), content.data() + begin, static_cast<unsigned>(kChunk));
    content.resize(begin + static_cast<std::size_t>(count > 0 ? count : 0));
    // At the end of a file that was cut off, gzread gives what it has and only sets the error.
    int code = Z_OK;
    gzerror(file.get(), &code);
    if (count < 0 || code != Z_OK) fail(file.get(), path);
    if (count == 0) return content;
  }
}

std::filesystem::path find_data_file(const std::filesystem::path& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    std::filesystem::path path = folder / (name + ending);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  throw DataError("no file " + quoted(folder / (name + ".gz")) +
                  ": install the package 'dataset-fashion-mnist', or name the folder that has it with --data");
}

}  // namespace fashion_mnist
