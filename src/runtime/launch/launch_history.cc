// In: the result or exception of each launch of this program. Out: the same for ranks that execute the program again,
// from an unnamed file. Called by launch().
#include "runtime/launch/launch_history.h"

#include <fcntl.h>
#include <lrun/error.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "runtime/launch/whole_file_access.h"

namespace lrun::detail {
namespace {

/// In front of the bytes of a launch.
struct EntryHeader {
  PastLaunch::Outcome outcome = PastLaunch::Outcome::kReturned;
  std::int32_t rank = -1;
  std::int32_t code = 0;
  std::uint32_t unused = 0;
  std::uint64_t bytes = 0;
};

[[noreturn]] void throw_history_error(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), "what launches returned: " + what);
}

Fd file_without_name() {
  const std::string folder = std::filesystem::temp_directory_path().string();
  Fd file(::open(folder.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  std::string path = folder + "/lrun-launches-XXXXXX";  // a file system without unnamed files
  file = Fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) throw_history_error(errno, "a file in " + folder);
  ::unlink(path.c_str());
  return file;
}

using Outcome = PastLaunch::Outcome;

/// An exception that is made from a text.
struct Class {
  Outcome outcome;
  bool (*fits)(const std::exception& error);
  void (*raise)(const std::string& text);
};

template <class Exception>
constexpr Class class_of(Outcome outcome) {
  return {outcome, [](const std::exception& error) { return dynamic_cast<const Exception*>(&error) != nullptr; },
          [](const std::string& text) { throw Exception(text); }};
}

/// Derived classes come before their bases.
constexpr std::array kClasses = {
    class_of<Unsupported>(Outcome::kUnsupported),
    class_of<BadEnvironment>(Outcome::kBadEnvironment),
    class_of<Error>(Outcome::kError),
    class_of<std::invalid_argument>(Outcome::kInvalidArgument),
    class_of<std::out_of_range>(Outcome::kOutOfRange),
    class_of<std::logic_error>(Outcome::kLogicError),
    class_of<std::runtime_error>(Outcome::kRuntimeError),
};

/// Its constructor appends the text of the code.
std::system_error system_error_of(const PastLaunch& launch) {
  const std::error_code code(launch.code, std::generic_category());
  const std::string words = ": " + code.message();
  const bool has_words = launch.bytes.ends_with(words);
  return {code, launch.bytes.substr(0, launch.bytes.size() - (has_words ? words.size() : 0))};
}

PastLaunch outcome_of(const std::exception& error) {
  if (const auto* failed = dynamic_cast<const WorkersFailed*>(&error)) {
    return {Outcome::kWorkersFailed, failed->rank(), failed->exit_code(), error.what()};
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    return {Outcome::kSystemError, -1, system->code().value(), error.what()};
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return {Outcome::kBadAlloc, -1, 0, error.what()};
  const auto found = std::ranges::find_if(kClasses, [&](const Class& known) { return known.fits(error); });
  return {found == kClasses.end() ? Outcome::kError : found->outcome, -1, 0, error.what()};
}

[[noreturn]] void raise(const PastLaunch& launch) {
  if (launch.outcome == Outcome::kWorkersFailed) throw WorkersFailed(launch.bytes, launch.rank, launch.code);
  if (launch.outcome == Outcome::kSystemError) throw system_error_of(launch);
  if (launch.outcome == Outcome::kBadAlloc) throw std::bad_alloc();
  const auto found = std::ranges::find(kClasses, launch.outcome, &Class::outcome);
  if (found != kClasses.end()) found->raise(launch.bytes);
  throw Error(launch.bytes);
}

PastLaunch run(const std::function<std::string()>& launch, std::exception_ptr& thrown) {
  try {
    return {Outcome::kReturned, -1, 0, launch()};
  } catch (const std::exception& error) {
    thrown = std::current_exception();
    return outcome_of(error);
  }
}

}  // namespace

void LaunchHistory::append(const PastLaunch& launch) {
  if (!file_) file_ = file_without_name();
  const EntryHeader header{launch.outcome, launch.rank, launch.code, 0, launch.bytes.size()};
  int error = write_at(fd(), &header, sizeof header, written_);
  if (error == 0) error = write_at(fd(), launch.bytes.data(), launch.bytes.size(), written_ + sizeof header);
  if (error != 0) {
    [[maybe_unused]] const int shortened = ::ftruncate(fd(), static_cast<off_t>(written_));  // gives room back
    throw_history_error(error, "write");
  }
  written_ += sizeof header + launch.bytes.size();
}

PastLaunch LaunchHistory::read_next() {
  EntryHeader header;
  if (const int error = read_at(fd(), &header, sizeof header, read_)) throw_history_error(error, "read");
  PastLaunch launch{header.outcome, header.rank, header.code, std::string(header.bytes, '\0')};
  if (const int error = read_at(fd(), launch.bytes.data(), launch.bytes.size(), read_ + sizeof header)) {
    throw_history_error(error, "read");
  }
  read_ += sizeof header + header.bytes;
  return launch;
}

int PastLaunches::history() const {
  if (loss_.empty()) return history_.fd();
  throw Error(
      "ranks of 'ddp_spawn' execute the program again, and what an earlier launch returned could not be kept for "
      "them: " +
      loss_ + "; name a folder with room in TMPDIR, or use 'ddp_fork'");
}

std::string PastLaunches::record(bool keeps, const std::function<std::string()>& launch) {
  std::exception_ptr thrown;
  PastLaunch outcome = run(launch, thrown);
  ++count_;
  if (keeps) keep(outcome);
  if (thrown) std::rethrow_exception(thrown);
  return std::move(outcome.bytes);
}

/// The launch itself succeeded, or has an error of its own: only a later launch needs its history.
void PastLaunches::keep(const PastLaunch& outcome) {
  if (!loss_.empty()) return;
  try {
    history_.append(outcome);
  } catch (const std::exception& error) {
    loss_ = error.what();
    history_ = LaunchHistory();  // it is not needed any more, and may be what fills the folder
  }
}

std::string PastLaunches::replay(LaunchHistory& history) {
  ++count_;
  PastLaunch launch = history.read_next();
  if (launch.outcome != Outcome::kReturned) raise(launch);
  return std::move(launch.bytes);
}

}  // namespace lrun::detail
