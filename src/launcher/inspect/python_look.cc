// In: a process. Out: what its Python threads do, or why that cannot be read. Called by StackSampler, in `lrun stack`.
#include "inspect/python_look.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/duration.h"
#include "base/small_file.h"
#include "inspect/elf_symbols.h"
#include "inspect/mapping.h"
#include "inspect/memory_reader.h"
#include "inspect/process_look.h"
#include "inspect/python_frames.h"
#include "inspect/python_layout.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostWordBytes = 64 * 1024;

/// Fills pieces with memory of a process. \return the errno, or 0
int read_process(pid_t pid, std::span<const MemoryPiece> pieces) {
  std::vector<iovec> here;
  std::vector<iovec> there;
  std::size_t wanted = 0;
  for (const MemoryPiece& piece : pieces) {
    here.push_back({piece.to, piece.bytes});
    there.push_back({reinterpret_cast<void*>(piece.address), piece.bytes});  // NOLINT(performance-no-int-to-ptr)
    wanted += piece.bytes;
  }
  const ssize_t got = ::process_vm_readv(pid, here.data(), here.size(), there.data(), there.size(), 0);
  if (got < 0) return errno;
  return static_cast<std::size_t>(got) == wanted ? 0 : EFAULT;
}

/// The first word that it was started with, which everybody may read.
std::string first_word_of(pid_t pid) {
  const std::string words = read_small_file(fmt::format("/proc/{}/cmdline", pid), kMostWordBytes).value_or("");
  return words.substr(0, words.find('\0'));
}

bool is_python_name(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("pypy");
}

/// A process that has just ended gives others.
bool is_refusal(int error_number) { return error_number == EPERM || error_number == EACCES || error_number == ENOSYS; }

/// A /proc of other processes than those that we can name, as after 'unshare --pid' without '--mount-proc'.
bool is_proc_of_others() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self", error).string() != std::to_string(::getpid());
}

/// The interpreter of a process, searched in its files in the order of their addresses: mostly the first has it.
struct Search {
  std::optional<PythonPlace> python{};
  bool is_python = false;  ///< as far as names tell
  int error_number = 0;    ///< of the question which program it runs
};

Search search_python(pid_t pid, MemoryReader& memory) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error).string();
  Search search{.is_python = is_python_name(error ? first_word_of(pid) : program), .error_number = error.value()};
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  constexpr int kMostLines = 1'000'000;
  int lines = 0;
  for (std::string line; !search.python && lines < kMostLines && std::getline(maps, line); ++lines) {
    const std::optional<Mapping> file = mapping_of(line);
    if (!file || !file->is_first_of_file()) continue;
    const bool is_library = file->path.find("/libpython") != std::string::npos;
    if (!is_library && file->path != program) continue;
    search.is_python = search.is_python || is_library;
    if (const auto symbols = ElfSymbols::at(memory, file->begin)) search.python = find_python(memory, *symbols);
  }
  return search;
}

/// The result of `read`, which is empty while the process moves: after some tries there are pauses, since a thread may
/// be waiting for a core in the middle of a call.
template <typename Read>
auto read_until(SteadyTime end, const Read& read) {
  constexpr int kMostTries = 100;
  constexpr int kTriesAtOnce = 20;
  constexpr std::chrono::microseconds kPause(50);
  for (int tries = 0; tries < kMostTries && std::chrono::steady_clock::now() < end; ++tries) {
    if (tries > kTriesAtOnce) std::this_thread::sleep_for(kPause);
    if (auto value = read()) return value;
  }
  return decltype(read())();
}

PythonLook refused(const std::string& why) { return {.problem = "no Python stack: " + why}; }

}  // namespace

PythonLook look_at_python(pid_t pid) {
  if (is_proc_of_others()) return refused("/proc is of another PID namespace; mount one in this namespace");
  int error_number = 0;
  MemoryReader memory([&](std::span<const MemoryPiece> pieces) {
    const int error = read_process(pid, pieces);
    if (is_refusal(error)) error_number = error;
    return error == 0;
  });
  const Search search = search_python(pid, memory);
  if (!search.python) {
    if (!search.is_python) return {};
    if (is_refusal(search.error_number)) error_number = search.error_number;
    return refused(error_number != 0 ? refusal_of_look(pid, error_number)
                                     : "no CPython of version 3.9 or later was found in it");
  }
  if (!search.python->problem.empty()) return refused(search.python->problem);
  constexpr Duration kLimit(10);
  constexpr std::size_t kMostShownThreads = 64;
  constexpr const char* kMoved = "it moved while it was read; look again";
  const SteadyTime end = std::chrono::steady_clock::now() + kLimit;
  PythonLook look;
  const auto threads = read_until(end, [&] { return python_threads(memory, *search.python); });
  if (!threads) return refused(kMoved);
  for (const PythonThread& thread : *threads) {
    auto frames = read_until(end, [&] { return python_stack(memory, *search.python, thread); });
    if (!frames && look.threads.empty()) return refused(kMoved);
    if (frames) look.threads.push_back({thread.holds_gil, *std::move(frames)});
    if (look.threads.size() == kMostShownThreads) break;
  }
  return look.threads.empty() ? refused("the interpreter has no thread yet") : look;
}

}  // namespace lrun::launcher
