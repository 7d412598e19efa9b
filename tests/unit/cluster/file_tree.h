#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace lrun {

/// A folder that stands for '/': what a test writes there is what lrun reads. Removed with the object.
class FileTree {
 public:
  FileTree() {
    std::string name = (std::filesystem::temp_directory_path() / "lrun-tree-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~FileTree() { std::filesystem::remove_all(root_); }
  FileTree(const FileTree&) = delete;
  FileTree& operator=(const FileTree&) = delete;

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file(root_ + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace lrun
