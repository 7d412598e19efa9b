#include "remote/own_program.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace lrun::launcher {

std::string own_program_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string own_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty()) throw std::system_error(EIO, std::generic_category(), "cannot read lrun itself");
  return bytes;
}

}  // namespace lrun::launcher
