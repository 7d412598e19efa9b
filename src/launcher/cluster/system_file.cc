#include "cluster/system_file.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/small_file.h"

namespace lrun::launcher {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

bool is_number(const std::string& name) { return name.find_first_not_of("0123456789") == std::string::npos; }

/// '9' before '10', numbers before names.
bool comes_first(const std::string& left, const std::string& right) {
  if (is_number(left) != is_number(right)) return is_number(left);
  if (is_number(left) && left.size() != right.size()) return left.size() < right.size();
  return left < right;
}

}  // namespace

std::string read_text(const std::string& path) {
  constexpr std::size_t kMostBytes = 1 << 20;  // far more than the kernel makes up
  return read_small_file(path, kMostBytes).value_or("");
}

std::string read_line(const std::string& path) {
  std::string line = read_text(path);
  line.resize(std::min(line.size(), line.find('\n')));
  return line;
}

long read_number(const std::string& path, long otherwise) {
  const std::string line = read_line(path);
  char* end = nullptr;
  errno = 0;
  const long number = std::strtol(line.c_str(), &end, 0);
  return line.empty() || *end != '\0' || errno != 0 ? otherwise : number;
}

std::vector<std::string> list_names(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseDirectory> stream(::opendir(directory.c_str()));
  if (!stream) return names;
  while (const dirent* const entry = ::readdir(stream.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end(), comes_first);
  return names;
}

}  // namespace lrun::launcher
