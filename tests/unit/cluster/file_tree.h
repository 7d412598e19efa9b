#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.h"

namespace lrun::launcher {

/// A folder that stands for '/': lrun reads the files that a test writes there.
class FileTree {
 public:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file(root() + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  [[nodiscard]] std::string root() const { return folder_.path().string(); }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace lrun::launcher
