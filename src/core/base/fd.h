#pragma once

#include <string_view>
#include <utility>

namespace lrun::inline core {

/// The owner of one file descriptor. Move-only; closes in its destructor.
/// Every descriptor of lrun is opened with CLOEXEC at its creation.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
  /// Gives the descriptor away; the caller closes it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  /// Closes now; harmless when empty.
  void reset() noexcept;

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};

/// A pipe whose ends are CLOEXEC.
/// \throws std::system_error  EMFILE, ENFILE.
Pipe make_pipe();

/// Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed, so that no pipe or socket of ours is taken for
/// the console. To be called before anything is opened.
void fill_standard_descriptors();

/// Writes all of `bytes`, and leaves in it the part that was not written. \return 0, or the errno of the failure.
int write_all(int fd, std::string_view& bytes) noexcept;
/// The same where the rest does not matter.
inline int write_all(int fd, std::string_view&& bytes) noexcept { return write_all(fd, bytes); }

/// Takes the lock (flock) of an open file or folder, for as long as a copy of the descriptor lives. \return false, with
/// errno: somebody else has it.
bool try_lock(const Fd& file) noexcept;

/// Sets O_NONBLOCK on a descriptor that no other process shares.
/// \throws std::system_error  EBADF.
void set_nonblocking(int fd);

}  // namespace lrun::inline core
