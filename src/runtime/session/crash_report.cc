// In: a fault of this process (SIGSEGV and the like). Out: one line on stderr with the places in the machine code,
// which lrun's verdict reads. The session installs it; the handler is async-signal-safe.
#include "runtime/session/crash_report.h"

#include <execinfo.h>
#include <fcntl.h>
#include <features.h>
#include <link.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace lrun::detail {
namespace {

constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr std::size_t kMostFrames = 48;
constexpr std::size_t kMostNameBytes = 512;

/// The name of a file, cut to what fits.
class Name {
 public:
  void set(std::string_view text) {
    size_ = std::min(text.size(), bytes_.size());
    std::memcpy(bytes_.data(), text.data(), size_);
  }
  /// The target of a symbolic link.
  void set_to_target_of(const char* link) {
    const ssize_t size = ::readlink(link, bytes_.data(), bytes_.size());
    size_ = size < 0 ? 0 : static_cast<std::size_t>(size);
  }
  [[nodiscard]] std::string_view text() const { return {bytes_.data(), size_}; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  std::array<char, kMostNameBytes> bytes_{};
  std::size_t size_ = 0;
};

/// One place in the machine code; after find_modules() as a file and an offset.
struct Place {
  std::uintptr_t address = 0;
  std::uintptr_t offset = 0;
  Name file;
};

/// The working memory of a report. Not on the stack, which may be used up; one thread reports.
struct CrashReport {
  std::array<void*, kMostFrames> frames{};
  std::array<Place, kMostFrames> places{};
  std::size_t count = 0;
  Name program;          ///< the executable
  Name folder_of_torch;  ///< with a slash at its end; empty: the process has no LibTorch
  std::array<char, 8192> maps{};
  std::array<char, 4096> text{};
  std::size_t size = 0;

  void add(std::string_view words) {
    const std::size_t length = std::min(words.size(), text.size() - size);
    std::memcpy(text.data() + size, words.data(), length);
    size += length;
  }
  void add_hex(std::uintptr_t number) {
    std::array<char, 2 * sizeof number> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
    add("0x");
    add({digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
  void add_place(const Place& place) {
    add(place.file.empty() ? std::string_view("unknown code") : place.file.text());
    add(place.file.empty() ? " " : "+");
    add_hex(place.file.empty() ? place.address : place.offset);
  }
};

CrashReport crash;
std::atomic_flag is_reporting;
std::atomic_flag has_stack;
std::array<char, 32768> handler_stack;

/// A line of /proc/self/maps: '55d0…-55d1… r-xp 00001000 08:01 1234   /home/me/train'.
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool is_readable = false;
  std::uintptr_t file_offset = 0;
  std::uintptr_t inode = 0;
  std::string_view file;
};

std::uintptr_t take_number(std::string_view& text, int base) {
  std::uintptr_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number, base).ptr;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty()) text.remove_prefix(1);  // the text behind it
  return number;
}

Mapping parse_mapping(std::string_view line) {
  Mapping mapping;
  mapping.begin = take_number(line, 16);
  mapping.end = take_number(line, 16);
  mapping.is_readable = line.starts_with('r');
  line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
  mapping.file_offset = take_number(line, 16);
  line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
  mapping.inode = take_number(line, 10);
  const std::size_t path = line.find('/');
  if (path != std::string_view::npos) mapping.file = line.substr(path);
  return mapping;
}

std::string_view folder_of(std::string_view file) { return file.substr(0, file.rfind('/') + 1); }  // npos + 1 is 0

/// The argument of addr2line: in a program that is loaded at the address it was linked to, the address itself.
std::uintptr_t offset_in(std::uintptr_t address, std::uintptr_t begin_of_file) {
  ElfW(Ehdr) header{};
  std::memcpy(&header, std::bit_cast<const void*>(begin_of_file), sizeof header);
  return header.e_type == ET_EXEC ? address : address - begin_of_file;
}

class ModuleFinder {
 public:
  void look_at(std::string_view line) {
    const Mapping mapping = parse_mapping(line);
    if (mapping.file.empty()) return;
    const std::string_view folder = folder_of(mapping.file);
    if (mapping.file.substr(folder.size()).starts_with("libtorch_cpu.so")) crash.folder_of_torch.set(folder);
    if (mapping.inode != inode_) begin_ = 0;
    inode_ = mapping.inode;
    if (mapping.file_offset == 0 && mapping.is_readable) begin_ = mapping.begin;
    for (std::size_t i = 0; i < crash.count && begin_ != 0; ++i) {
      Place& place = crash.places[i];
      if (place.address < mapping.begin || place.address >= mapping.end) continue;
      place.file.set(mapping.file);
      place.offset = offset_in(place.address, begin_);
    }
  }

 private:
  std::uintptr_t begin_ = 0;  ///< of the file that is mapped by the lines looked at; 0: not known
  std::uintptr_t inode_ = 0;
};

void find_modules() {
  crash.program.set_to_target_of("/proc/self/exe");
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  ModuleFinder finder;
  std::size_t kept = 0;
  while (maps >= 0) {
    const ssize_t count = ::read(maps, crash.maps.data() + kept, crash.maps.size() - kept);
    if (count <= 0) break;
    std::string_view text(crash.maps.data(), kept + static_cast<std::size_t>(count));
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      finder.look_at(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
    kept = text.size() < crash.maps.size() ? text.size() : 0;  // no path is that long
    std::memmove(crash.maps.data(), text.data(), kept);
  }
  if (maps >= 0) ::close(maps);
}

/// Code of a system library or LibTorch, as far as its path shows.
bool is_of_library(std::string_view file) {
  constexpr std::array<std::string_view, 5> kSystem{"/lib/", "/lib32/", "/lib64/", "/usr/", "/opt/"};
  constexpr std::array<std::string_view, 2> kOfPython{"/site-packages/", "/dist-packages/"};
  constexpr std::array<std::string_view, 7> kNames{"libcu",   "libiomp",     "liblrun",  "libmkl",
                                                   "libnccl", "libopenblas", "libpython"};  // wherever they lie
  if (file == crash.program.text()) return false;
  const std::string_view folder = folder_of(file);
  const std::string_view name = file.substr(folder.size());
  return folder == crash.folder_of_torch.text() ||
         std::ranges::any_of(kNames, [&](auto library) { return name.starts_with(library); }) ||
         std::ranges::any_of(kSystem, [&](auto system) { return folder.starts_with(system); }) ||
         std::ranges::any_of(kOfPython, [&](auto packages) { return folder.find(packages) != folder.npos; });
}

struct Registers {
  std::uintptr_t program_counter = 0;
  std::uintptr_t return_address = 0;  ///< while no instruction of a function has run
};

Registers registers_of(const void* context) {
  [[maybe_unused]] const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
  Registers registers;
#if defined(__x86_64__)
  registers.program_counter = static_cast<std::uintptr_t>(machine.gregs[REG_RIP]);
  const auto* const stack = std::bit_cast<const void*>(machine.gregs[REG_RSP]);
  // A call through a null pointer has just pushed it.
  if (registers.program_counter == 0) std::memcpy(&registers.return_address, stack, sizeof registers.return_address);
#elif defined(__aarch64__)
  registers = {machine.pc, machine.regs[30]};
#endif
  return registers;
}

constexpr bool kUnwindsWithoutLock = __GLIBC_PREREQ(2, 35);

/// The faulting instruction first, then its callers: each by the call itself, not by where it returns to.
void find_frames(const Registers& registers) {
  const std::uintptr_t fault = registers.program_counter;
  crash.places[0].address = fault;
  crash.count = 1;
  if (fault == 0) crash.places[crash.count++].address = registers.return_address - 1;
  if (fault == 0 || !kUnwindsWithoutLock) return;
  const int found = ::backtrace(crash.frames.data(), static_cast<int>(crash.frames.size()));
  bool is_caller = false;  // the handler's own frames come first
  for (void* const frame : std::span(crash.frames).first(static_cast<std::size_t>(found))) {
    const auto address = reinterpret_cast<std::uintptr_t>(frame);
    if (is_caller && crash.count < crash.places.size()) crash.places[crash.count++].address = address - 1;
    is_caller = is_caller || address == fault;
  }
}

std::string_view name_of_fault(int signal_number) {
  switch (signal_number) {
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGSEGV";
  }
}

void tell(int signal_number, const siginfo_t& info) {
  crash.add("lrun: ");
  crash.add(name_of_fault(signal_number));
  const bool is_of_data = signal_number == SIGSEGV || signal_number == SIGBUS;
  if (is_of_data && info.si_code != SI_KERNEL) {  // or else the address is not known
    crash.add(" at address ");
    crash.add_hex(reinterpret_cast<std::uintptr_t>(info.si_addr));
  }
  crash.add(" in ");
  crash.add_place(crash.places[0]);
  const auto places = std::span(crash.places).first(crash.count);
  const auto own = std::ranges::find_if(
      places, [](const Place& place) { return !place.file.empty() && !is_of_library(place.file.text()); });
  if (own != places.begin() && own != places.end()) {
    crash.add(", called from ");
    crash.add_place(*own);
  }
  crash.add("\n");
  (void)!::write(STDERR_FILENO, crash.text.data(), crash.size);
}

/// Async-signal-safe. On return the instruction faults again, and the signal, whose handler is the default by now, ends
/// the process there. A signal that another process sent has to be sent again.
void tell_fault(int signal_number, siginfo_t* info, void* context) {
  if (info->si_code <= 0) {
    ::raise(signal_number);
    return;
  }
  if (is_reporting.test_and_set()) return;
  find_frames(registers_of(context));
  find_modules();
  tell(signal_number, *info);
}

/// A stack that is used up has no room for a handler.
void give_stack() {
  stack_t now{};
  if (::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0 || has_stack.test_and_set()) return;
  const stack_t own{.ss_sp = handler_stack.data(), .ss_flags = 0, .ss_size = handler_stack.size()};
  ::sigaltstack(&own, nullptr);
}

}  // namespace

void report_faults() {
  void* frame = nullptr;
  if (kUnwindsWithoutLock) ::backtrace(&frame, 1);  // the first call loads memory that later ones need
  struct sigaction action {};
  action.sa_sigaction = tell_fault;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  ::sigemptyset(&action.sa_mask);
  bool handles = false;
  for (const int signal_number : kFaults) {
    struct sigaction now {};
    const bool is_default =
        ::sigaction(signal_number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
    if (is_default) handles = ::sigaction(signal_number, &action, nullptr) == 0 || handles;
  }
  if (handles) give_stack();
}

}  // namespace lrun::detail
