#include "run/unread_stdin.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace lrun::launcher {

namespace {

namespace fs = std::filesystem;

bool is_input(const struct stat& other) {
  struct stat own {};
  return ::fstat(STDIN_FILENO, &own) == 0 && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/// The mode of the link shows whether the descriptor is open for reading: a writer of the pipe has a link, too.
bool reads_input(const fs::path& descriptor) {
  struct stat link {};
  struct stat file {};
  return ::lstat(descriptor.c_str(), &link) == 0 && (link.st_mode & S_IRUSR) != 0 &&
         ::stat(descriptor.c_str(), &file) == 0 && is_input(file);
}

/// The maker reads the pipe on none of its descriptors, and all of them could be listed.
bool leaves_input_to_us(pid_t maker) {
  std::error_code error;
  fs::directory_iterator entry("/proc/" + std::to_string(maker) + "/fd", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (reads_input(entry->path())) return false;
  }
  return !error;
}

/// srun gives its own input to every task, through a pipe that Slurm's daemon makes: the user did not mean it for lrun.
bool is_slurm(pid_t starter) {
  std::ifstream file("/proc/" + std::to_string(starter) + "/comm");
  std::string name;
  return std::getline(file, name) && name == "slurmstepd";
}

}  // namespace

pid_t maker_of_input_pipe() {
  struct stat own {};
  if (::fstat(STDIN_FILENO, &own) != 0 || !S_ISFIFO(own.st_mode)) return 0;
  const pid_t starter = ::getppid();
  return starter != 0 && ::getsid(starter) == ::getsid(0) && !is_slurm(starter) ? starter : 0;
}

UnreadStdin::UnreadStdin(EventLoop& loop, pid_t maker, std::function<void()> data_came)
    : maker_(maker), data_came_(std::move(data_came)) {
  readable_ = loop.on_readable(STDIN_FILENO, [this] { look(); });
}

/// The watch is cancelled also at the end of the pipe, which stays readable for ever.
void UnreadStdin::look() {
  readable_.cancel();
  int bytes = 0;
  if (::ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0 && leaves_input_to_us(maker_)) data_came_();
}

}  // namespace lrun::launcher
