#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace lrun::test {

/// A folder that goes with the test, and all that is in it.
class TemporaryFolder {
 public:
  /// \throws std::system_error  no folder can be made.
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lrun-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::system_error(errno, std::generic_category(), pattern);
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }
  /// Writes a file, an executable one if asked for nothing else. \return its path.
  [[nodiscard]] std::string script(const std::string& name, const std::string& text, bool executable = true) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file) << text;
    ::chmod(file.c_str(), executable ? 0755 : 0644);
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace lrun::test
