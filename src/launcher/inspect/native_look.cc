// In: a process. Out: the calls of its main thread outside Python, or why they cannot be read. Called by StackSampler,
// in `lrun stack`.
#include "inspect/native_look.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/duration.h"
#include "base/json.h"
#include "inspect/call_frames.h"
#include "inspect/elf_image.h"
#include "inspect/mapping.h"
#include "inspect/process_look.h"
#include "process/tracer.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kMostShownBytes = 300;
constexpr std::size_t kMostStackBytes = std::size_t{1} << 20U;
/// The kernel may keep a thread from stopping: it waits for a device, say, or long for a processor.
constexpr Duration kStopLimit(1000);
/// For a look of another lrun at the same thread, which takes a fraction of a millisecond.
constexpr Duration kOtherLookLimit(50);
/// Below the stack pointer functions may keep what they need.
constexpr Address kRedZone = 128;
constexpr std::size_t kHeadBytes = 4096;
constexpr const char* kHasEnded = "it has ended";
constexpr Address kMostVdsoBytes = Address{1} << 20U;

/// Fills `bytes` with what is there, and cuts off what cannot be read.
void read_memory(pid_t pid, Address address, std::vector<unsigned char>& bytes) {
  const iovec here{bytes.data(), bytes.size()};
  const iovec there{reinterpret_cast<void*>(address), bytes.size()};  // NOLINT(performance-no-int-to-ptr)
  const ssize_t got = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
}

std::vector<unsigned char> memory_of(pid_t pid, Address address, std::size_t count) {
  std::vector<unsigned char> bytes(count);
  read_memory(pid, address, bytes);
  return bytes;
}

NativeLook no_stack(std::string_view why) { return {.problem = fmt::format("no native stack: {}", why)}; }

std::string readable(const std::string& name) {
  if (!name.starts_with("_Z")) return name.empty() ? "??" : name.substr(0, kMostShownBytes);  // 'i' is no type here
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  const std::string shown(text ? text.get() : name.c_str());
  return shown.substr(0, std::min(kMostShownBytes, shown.find(" [clone ")));
}

std::string refusal_of_ptrace(pid_t pid, int error_number) {
  if (look_at_process(pid).has_ended()) return kHasEnded;
  if (const std::optional<Tracer> tracer = tracer_of(pid))
    return fmt::format("it is traced already, by {}", tracer->text());
  return error_number == EPERM ? refusal_of_look(pid, error_number) : std::strerror(error_number);
}

/// The registers and the stack of a thread at one moment.
struct ThreadCopy {
  ThreadRegisters registers;
  Address begin = 0;  ///< of the stack
  std::vector<unsigned char> stack;
  std::string problem;  ///< why there is none; empty: there is

  [[nodiscard]] std::optional<Address> word_at(Address address) const {
    const Address offset = address - begin;
    if (address < begin || offset > stack.size() || stack.size() - offset < sizeof(Address)) return std::nullopt;
    return value_at<Address>(stack, static_cast<std::size_t>(offset));
  }
};

#if defined(__x86_64__)

/// Waits that a stop ends with EINTR, and that may be made again: nothing has happened yet.
bool may_be_made_again(std::uint64_t call) {
  constexpr long kWaits[] = {SYS_epoll_wait, SYS_epoll_pwait,  SYS_epoll_pwait2,  SYS_rt_sigtimedwait, SYS_semop,
                             SYS_semtimedop, SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter,  SYS_read,
                             SYS_readv,      SYS_recvfrom,     SYS_recvmsg,       SYS_recvmmsg,        SYS_write,
                             SYS_writev,     SYS_sendto,       SYS_sendmsg,       SYS_sendmmsg,        SYS_accept,
                             SYS_accept4};
  return std::find(std::begin(kWaits), std::end(kWaits), static_cast<long>(call)) != std::end(kWaits);
}

/// Stops a thread for as long as this object lives, and never for longer than this process does.
class StoppedThread {
 public:
  /// problem() says whether it worked.
  explicit StoppedThread(pid_t thread) : thread_(thread) {
    if (const int error_number = seize(); error_number != 0) {
      problem_ = refusal_of_ptrace(thread, error_number);
      return;
    }
    problem_ = ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 ? wait() : kHasEnded;
  }
  ~StoppedThread() {
    if (problem_.empty() && signal_ == 0) let_call_go_on();
    if (!problem_.empty() || ::ptrace(PTRACE_DETACH, thread_, nullptr, signal_) == 0) return;
    ::waitpid(thread_, nullptr, __WALL);  // it has been killed: its parent cannot reap it before its tracer
  }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  /// Empty: it is stopped.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] std::optional<ThreadRegisters> registers() const {
    const std::optional<user_regs_struct> read = all_registers();
    if (!read) return std::nullopt;
    const user_regs_struct& all = *read;
    return ThreadRegisters{{all.rax, all.rdx, all.rcx, all.rbx, all.rsi, all.rdi, all.rbp, all.rsp, all.r8, all.r9,
                            all.r10, all.r11, all.r12, all.r13, all.r14, all.r15, all.rip}};
  }

 private:
  [[nodiscard]] std::optional<user_regs_struct> all_registers() const {
    user_regs_struct all{};
    iovec part{&all, sizeof all};
    constexpr long kGeneral = 1;  // NT_PRSTATUS
    if (::ptrace(PTRACE_GETREGSET, thread_, kGeneral, &part) != 0 || part.iov_len != sizeof all) return std::nullopt;
    return all;
  }
  /// Its program may take EINTR for an error. The kernel makes a call again whose result says that it is to be, unless
  /// a handler of a signal comes first.
  void let_call_go_on() const {
    constexpr long kMakeAgain = -514;  // ERESTARTNOHAND
    const std::optional<user_regs_struct> all = all_registers();
    if (!all || static_cast<long>(all->rax) != -EINTR || !may_be_made_again(all->orig_rax)) return;
    ::ptrace(PTRACE_POKEUSER, thread_, offsetof(user, regs.rax), kMakeAgain);
  }
  /// \return 0, or the errno of the refusal. Another look of lrun's lets the thread go in a moment.
  int seize() const {
    const SteadyTime end = steady_now() + kOtherLookLimit;
    while (::ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) != 0) {
      const int error_number = errno;
      if (!tracer_of(thread_) || steady_now() > end) return error_number;
      ::usleep(1000);
    }
    return 0;
  }
  /// \return why it does not stop; empty: it has
  std::string wait() {
    const SteadyTime end = steady_now() + kStopLimit;
    while (true) {
      siginfo_t stop{};
      // A signal that was on its way stays with the thread, should this process be ended before it lets the thread go.
      constexpr int kWhat = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL;
      if (::waitid(P_PID, static_cast<id_t>(thread_), &stop, kWhat) != 0) return kHasEnded;
      if (stop.si_pid == thread_) {
        if (stop.si_code != CLD_TRAPPED && stop.si_code != CLD_STOPPED) return kHasEnded;
        const bool is_own = (stop.si_status >> 8) == PTRACE_EVENT_STOP;
        signal_ = is_own ? 0 : stop.si_status & 0x7F;
        return {};
      }
      if (steady_now() > end) return fmt::format("it did not stop within {}", format_duration(kStopLimit));
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  pid_t thread_;
  std::string problem_;
  long signal_ = 0;
};

ThreadCopy copy_of(pid_t pid, const std::vector<Mapping>& mappings) {
  ThreadCopy copy;
  copy.stack.resize(kMostStackBytes);  // before the stop: it takes time
  const StoppedThread thread(pid);
  if (!thread.problem().empty()) return {.problem = thread.problem()};
  const std::optional<ThreadRegisters> registers = thread.registers();
  if (!registers) return {.problem = "its registers are not those of a program of 64 bits"};
  copy.registers = *registers;
  copy.begin = registers->stack() - kRedZone;
  const Mapping* const mapping = mapping_at(mappings, registers->stack());
  if (mapping != nullptr) copy.stack.resize(std::min(kMostStackBytes, mapping->end - copy.begin));
  read_memory(pid, copy.begin, copy.stack);
  if (copy.stack.empty()) copy.problem = "its stack cannot be read";
  return copy;
}

#else

ThreadCopy copy_of(pid_t, const std::vector<Mapping>&) {
  return {.problem = "on this processor only a debugger reads it"};
}

#endif

/// The files that a process has loaded.
class LoadedFiles {
 public:
  LoadedFiles(pid_t pid, const std::vector<Mapping>& mappings) : pid_(pid), mappings_(mappings) {}

  /// nullptr: it cannot be read, or is another one than was loaded, since a package has been replaced.
  const ElfImage* file_of(const Mapping& mapping) {
    const auto [place, is_new] = images_.try_emplace(mapping.path);
    if (is_new) place->second = read(mapping);
    return place->second ? &*place->second : nullptr;
  }

 private:
  [[nodiscard]] std::optional<ElfImage> read(const Mapping& mapping) const {
    if (mapping.path == "[vdso]") {
      return ElfImage::of_bytes(memory_of(
          pid_, mapping.begin, static_cast<std::size_t>(std::min(mapping.end - mapping.begin, kMostVdsoBytes))));
    }
    if (!mapping.path.starts_with('/')) return std::nullopt;
    // In its own file system, and in ours, in which a program with another root has its files. Where the file has been
    // removed or replaced, what is loaded: that of the program, and of all where lrun may ask for it.
    const std::string folder = fmt::format("/proc/{}/", pid_);
    for (const std::string& path : {folder + "root" + mapping.path, mapping.path, folder + "exe",
                                    fmt::format("{}map_files/{:x}-{:x}", folder, mapping.begin, mapping.end)}) {
      std::optional<ElfImage> image = ElfImage::of_file(path);
      if (image && is_loaded(*image, mapping.path)) return image;
    }
    return std::nullopt;
  }

  /// The first bytes tell, which mostly hold the identity that linkers give each file.
  [[nodiscard]] bool is_loaded(const ElfImage& image, const std::string& path) const {
    const auto first = std::find_if(mappings_.begin(), mappings_.end(),
                                    [&](const Mapping& it) { return it.is_first_of_file() && it.path == path; });
    if (first == mappings_.end()) return false;
    const std::size_t count =
        std::min<std::size_t>({kHeadBytes, image.bytes().size(), static_cast<std::size_t>(first->end - first->begin)});
    const std::vector<unsigned char> head = memory_of(pid_, first->begin, count);
    return head.size() == count && std::equal(head.begin(), head.end(), image.bytes().begin());
  }

  pid_t pid_;
  const std::vector<Mapping>& mappings_;
  std::map<std::string, std::optional<ElfImage>> images_;
};

/// A place of the code in a file.
struct Call {
  std::string file;
  const ElfImage* image = nullptr;  ///< nullptr: it is not known
  Address address = 0;              ///< as the file has it
  bool is_signal = false;           ///< the kernel's call of a handler
};

/// The calls of a thread, one after the other.
class Calls {
 public:
  Calls(const ThreadCopy& copy, const std::vector<Mapping>& mappings, LoadedFiles& files)
      : copy_(copy), mappings_(mappings), files_(files), registers_(copy.registers) {
    while (calls_.size() < kMostFrames && step()) {
    }
  }

  [[nodiscard]] const std::vector<Call>& all() const { return calls_; }
  /// Why it is cut off; empty: it is whole.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  bool step() {
    const Address code = registers_.code() - (registers_.is_exact ? 0 : 1);
    const Mapping* const mapping = mapping_at(mappings_, code);
    if (mapping == nullptr) return stop("it runs at an address where nothing is mapped");
    Call& call = calls_.emplace_back();
    call.file = mapping->path.substr(mapping->path.rfind('/') + 1);
    const ElfImage* const image = files_.file_of(*mapping);
    if (image == nullptr) {
      return stop(mapping->path.starts_with('/') ? fmt::format("'{}' cannot be read, or was replaced", mapping->path)
                                                 : "its code is in no file, as that of a just-in-time compiler");
    }
    const std::optional<Address> place = image->code_address_of(code - mapping->begin + mapping->offset);
    if (!place) return stop(fmt::format("'{}' has no code there", mapping->path));
    call.image = image;
    call.address = *place;
    const Caller caller = caller_of(registers_, image->call_frames(), code - *place,
                                    [this](Address address) { return copy_.word_at(address); });
    if (caller.kind == Caller::Kind::kNone) return false;
    if (caller.kind == Caller::Kind::kNotRead) return stop("the rest of its stack is elsewhere, or beyond 1 MiB");
    if (caller.kind == Caller::Kind::kNotKnown) return stop(fmt::format("'{}' does not say who calls it", call.file));
    call.is_signal = caller.registers.is_exact;
    registers_ = caller.registers;
    return true;
  }

  bool stop(std::string why) {
    problem_ = std::move(why);
    return false;
  }

  const ThreadCopy& copy_;
  const std::vector<Mapping>& mappings_;
  LoadedFiles& files_;
  ThreadRegisters registers_;
  std::vector<Call> calls_;
  std::string problem_;
};

std::vector<StackFrame> frames_of(const std::vector<Call>& calls) {
  std::map<const ElfImage*, std::vector<std::size_t>> by_file;
  for (std::size_t i = 0; i < calls.size(); ++i) by_file[calls[i].image].push_back(i);
  std::vector<StackFrame> frames(calls.size());
  for (const auto& [image, places] : by_file) {
    std::vector<Address> addresses;
    for (const std::size_t place : places) addresses.push_back(calls[place].address);
    const std::vector<std::string> names =
        image != nullptr ? image->functions_at(addresses) : std::vector<std::string>(places.size());
    for (std::size_t n = 0; n < places.size(); ++n) {
      const Call& call = calls[places[n]];
      frames[places[n]] = {call.is_signal ? "<signal handler called>" : readable(names[n]),
                           call.file.substr(0, kMostShownBytes)};
    }
  }
  return frames;
}

}  // namespace

NativeLook look_at_native(pid_t pid) {
  // Before the stop, which may end what the process waits for, and so the process.
  const std::vector<Mapping> mappings = mappings_of(pid);
  if (mappings.empty()) return no_stack(refusal_of_ptrace(pid, EPERM));
  const ThreadCopy copy = copy_of(pid, mappings);
  if (!copy.problem.empty()) return no_stack(copy.problem);
  LoadedFiles files(pid, mappings);
  const Calls calls(copy, mappings, files);
  const bool is_known = !calls.all().empty() && calls.all().front().image != nullptr;
  if (!is_known) return no_stack(calls.problem());
  const std::string& problem = calls.problem();
  return {frames_of(calls.all()), problem.empty() ? "" : fmt::format("its native stack is cut off: {}", problem)};
}

std::string to_text(const NativeLook& look) {
  Json frames = Json::array();
  for (const StackFrame& frame : look.frames) frames.push_back({frame.function, frame.place});
  return json_text({{"frames", frames}, {"problem", look.problem}});
}

NativeLook native_look_from(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  NativeLook look;
  try {
    look.problem = json.at("problem").get<std::string>();
    for (const Json& frame : json.at("frames")) look.frames.push_back({frame.at(0), frame.at(1)});
  } catch (const Json::exception&) {
    return {};
  }
  return look;
}

}  // namespace lrun::launcher
