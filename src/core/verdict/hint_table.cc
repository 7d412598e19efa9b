#include "verdict/hint_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>

#include "base/shell_words.h"
#include "verdict/collective_name.h"
#include "verdict/native_error.h"

namespace lrun::inline core {
namespace {

constexpr HintRule kRules[] = {
    {"cuda-out-of-memory", "CUDA out of memory", "",
     "the GPU's memory is full: a smaller batch helps; 'nvidia-smi' shows who else uses it"},
    {"cuda-out-of-memory", "cudaErrorMemoryAllocation", "",
     "the GPU's memory is full: a smaller batch helps; 'nvidia-smi' shows who else uses it"},
    {"no-cuda-device", "no CUDA-capable device is detected", "",
     "no GPU is visible: look at 'nvidia-smi' and CUDA_VISIBLE_DEVICES"},
    {"no-cuda-device", "Found no NVIDIA driver", "",
     "no GPU driver is installed here: '--accelerator cpu' runs on processors"},
    {"cuda-device-ordinal", "invalid device ordinal", "",
     "the program asks for a GPU that it does not see: use LOCAL_RANK, and device 0 under '--isolate-gpus'"},
    {"cuda-device-assert", "device-side assert triggered", "",
     "run once with CUDA_LAUNCH_BLOCKING=1 to see the kernel; often a label or index is out of range"},
    {"cuda-illegal-access", "an illegal memory access was encountered", "",
     "run once with CUDA_LAUNCH_BLOCKING=1, or under compute-sanitizer, to see the kernel"},
    {"cuda-architecture", "no kernel image is available for execution", "",
     "this build of LibTorch knows no such GPU: install one that is made for it"},
    {"cuda-driver-version", "CUDA driver version is insufficient", "",
     "the GPU driver is older than the CUDA runtime: update one of the two"},
    {"cuda-fork", "Cannot re-initialize CUDA in forked subprocess", "",
     "use the 'spawn' start method for subprocesses, or touch CUDA only after the fork"},
    {"nccl-shared-memory", "NCCL", "No space left on device",
     "/dev/shm is too small for NCCL: 'docker run --shm-size=8g' or '--ipc=host'"},
    {"nccl-duplicate-gpu", "Duplicate GPU detected", "",
     "two ranks use one GPU: choose the device by LOCAL_RANK before the first CUDA call"},
    {"nccl-system-error", "ncclSystemError", "",
     "NCCL_DEBUG=INFO names the call that failed; often the network interface (NCCL_SOCKET_IFNAME) or memlock"},
    {"nccl-unhandled", "ncclUnhandledCudaError", "", "NCCL_DEBUG=INFO names the CUDA call that failed"},
    {"nccl-internal", "ncclInternalError", "", "NCCL_DEBUG=INFO names the call that failed"},
    {"nccl-invalid-usage", "ncclInvalidUsage", "",
     "often two ranks on one GPU: choose the device by LOCAL_RANK; NCCL_DEBUG=WARN says more"},
    {"collective-timeout", "Watchdog caught collective operation timeout", "",
     "some rank did not take part: look at what the others did; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 records the calls"},
    {"unused-parameters", "Expected to have finished reduction in the prior iteration", "",
     "some parameters had no part in the loss: DistributedDataParallel(find_unused_parameters=True)"},
    {"gloo-interface", "ifa != nullptr", "",
     "GLOO_SOCKET_IFNAME names no interface of this host: see 'ip -brief address'"},
    {"address-in-use", "EADDRINUSE", "",
     "another program or rank has it: add LOCAL_RANK to the program's own ports; MASTER_PORT is free by default"},
    {"address-in-use", "Address already in use", "",
     "another program or rank has it: add LOCAL_RANK to the program's own ports; MASTER_PORT is free by default"},
    {"address-in-use", "address already in use", "",
     "another program or rank has it: add LOCAL_RANK to the program's own ports; MASTER_PORT is free by default"},
    {"name-resolution", "Temporary failure in name resolution", "",
     "the host's name cannot be resolved: use its address"},
    {"name-resolution", "Name or service not known", "", "no such host name: check it, or use the address"},
    {"shared-memory", "DataLoader worker", "Bus error",
     "/dev/shm is full: 'docker run --shm-size=8g' or '--ipc=host', or fewer data loader workers"},
    {"shared-memory", "/dev/shm", "No space left on device",
     "/dev/shm is full: 'docker run --shm-size=8g' or '--ipc=host'; left-over files are in /dev/shm"},
    {"shared-memory", "unable to open shared memory object", "Too many open files",
     "raise 'ulimit -n', or torch.multiprocessing.set_sharing_strategy('file_system')"},
    {"data-loader-killed", "DataLoader worker", "killed by signal: Killed",
     "a data loader process was killed, most often for memory: fewer workers or a smaller prefetch"},
    {"no-space", "No space left on device", "", "a file system is full: 'df -h' shows which"},
    {"no-space", "Disk quota exceeded", "", "the disk quota is used up: 'quota -s' shows it"},
    {"file-limit", "Too many open files", "", "raise the limit: 'ulimit -n 65536' before lrun"},
    {"process-limit", "Resource temporarily unavailable", "fork",
     "too many processes or threads: see 'ulimit -u' and the cgroup's pids.max"},
    {"process-limit", "pthread_create failed", "",
     "too many threads: set OMP_NUM_THREADS, see 'ulimit -u' and the cgroup's pids.max"},
    {"process-limit", "can't start new thread", "",
     "too many threads: set OMP_NUM_THREADS, see 'ulimit -u' and the cgroup's pids.max"},
    {"memory-lock", "ibv_reg_mr", "", "the memlock limit is too small for InfiniBand: 'ulimit -l unlimited'"},
    {"memory-lock", "Cannot allocate memory", "ibv",
     "the memlock limit is too small for InfiniBand: 'ulimit -l unlimited'"},
    {"host-memory", "DefaultCPUAllocator: can't allocate memory", "",
     "the host's memory is full, not a GPU's: fewer workers, a smaller batch"},
    {"host-memory", "std::bad_alloc", "", "no memory was left, or 'ulimit -v' forbids more"},
    {"host-memory", "MemoryError", "", "no memory was left, or 'ulimit -v' forbids more"},
    {"host-memory", "Cannot allocate memory", "", "no memory was left, or 'ulimit -v' forbids more"},
    {"missing-torch", "No module named 'torch'", "",
     "this Python has no torch: activate the environment that has it; 'which python3' tells which runs"},
    {"missing-module", "No module named ", "",
     "install it for the Python that runs here; 'which python3' tells which runs"},
    {"import-error", "ImportError: ", "cannot open shared object file",
     "a library that the module needs is missing: 'ldd' on the module names it"},
    {"missing-library", "OSError: ", "cannot open shared object file",
     "the library is missing: LD_LIBRARY_PATH must name its folder, and 'ldd' on it what it needs itself"},
    {"missing-library", "error while loading shared libraries", "",
     "'ldd PROGRAM' lists what is missing; LD_LIBRARY_PATH or the program's rpath must name its folder"},
    {"glibc-version", "version `GLIBC_", "not found",
     "the program was built on a newer system: build it here, or run it in its container"},
    {"libstdcxx-version", "version `GLIBCXX_", "not found",
     "the program was built with a newer compiler: put that compiler's libstdc++ on LD_LIBRARY_PATH"},
    {"missing-symbol", "undefined symbol: ", "",
     "a library has another version than the program was built with; often two LibTorch on LD_LIBRARY_PATH"},
    {"executable-format", "Exec format error", "", "the program was built for another kind of machine"},
    {"permission", "Permission denied", "", "see who owns it with 'ls -l'; a script needs 'chmod +x' to be executed"},
    {"permission", "PermissionError: ", "", "see who owns it with 'ls -l'"},
    {"command-not-found", ": command not found", "", "the script calls a program that is not on PATH"},
    {"missing-file", "FileNotFoundError: ", "'/", "'namei PATH' shows which part of it is missing"},
    {"missing-file", "FileNotFoundError: ", " /", "'namei PATH' shows which part of it is missing"},
    {"missing-file", "FileNotFoundError: ", ": '", "relative names count from the folder where lrun was started"},
    {"illegal-instruction", "Illegal instruction", "", "the program uses instructions that this processor lacks"},
    {"thread-at-exit", "terminate called without an active exception", "",
     "a thread still ran at the exit; a torch program calls destroy_process_group() before its end"},
    {"local-rank-argument", "unrecognized arguments: --local", "", "read LOCAL_RANK from the environment instead"},
    {"missing-rank", "environment variable RANK expected", "",
     "the program cleared its environment: RANK is set by lrun"},
};

/// How to see the source line of a fault that only the machine code of is known.
std::string hint_of_fault(const FailureRecord& record) {
  for (const std::string& line : record.evidence) {
    const std::optional<FaultReport> report = parse_fault_report(line);
    if (!report) continue;
    const std::string_view place = report->own_place();
    const auto plus = place.rfind('+');
    if (!place.starts_with('/') || plus == std::string_view::npos) return {};
    const std::string_view file = place.substr(0, plus);
    const bool is_plain = file.find_first_of(" \t'\"\\$`&|;<>()*?[]#~!{}") == std::string_view::npos;
    return fmt::format("'addr2line -Cfipe {} {}' names the source line",
                       is_plain ? std::string(file) : quoted_for_shell(file), place.substr(plus + 1));
  }
  return {};
}

/// A fault of the program that said nothing of it.
constexpr std::array kFaults{SIGSEGV, SIGABRT, SIGFPE, SIGTRAP, SIGBUS, SIGILL};

/// \param in_python  whose own debugger, which --debug-rank starts, does not see a signal
std::string hint_of_silent_fault(const FailureRecord& record, bool in_python, bool asked_for_core) {
  const bool is_fault = std::any_of(kFaults.begin(), kFaults.end(), [&](int fault) { return record.ended_by(fault); });
  const bool silent = record.error.empty() && record.location.empty();
  if (!is_fault || !silent) return {};
  const std::string debugger = in_python ? fmt::format(" --wrap@{} \"gdb --args\"", record.rank) : std::string();
  return fmt::format("'--debug-rank {}{}' runs it in a debugger{}", record.rank, debugger,
                     asked_for_core ? "" : "; '--core' keeps its memory for one");
}

std::string_view hint_of_signal(int signal_number) {
  switch (signal_number) {
    case SIGKILL:
      return "lrun did not send it: look into the scheduler's log, 'dmesg', and who else may have";
    case SIGBUS:
      return "often a /dev/shm that was full ('df -h /dev/shm'), or a mapped file that somebody cut short";
    case SIGILL:
      return "often a program built for a newer processor: build it here, or without '-march=native'";
    case SIGXCPU:
      return "'ulimit -t' limits the CPU time";
    case SIGXFSZ:
      return "'ulimit -f' limits the size of files";
    case SIGSYS:
      return "a container's seccomp profile forbids a system call: 'dmesg' may name it";
    default:
      return {};
  }
}

/// What is left to say when nothing that was printed is known.
std::string_view hint_of_ending(const FailureRecord& record) {
  if (record.ending == FailureRecord::Ending::kSignaled) return hint_of_signal(record.value);
  if (record.ending != FailureRecord::Ending::kExited) return {};
  if (record.value == 127 && record.error.ends_with(": unbound variable")) return {};  // bash, under 'set -u'
  if (record.value == 127) return "a shell's code for a program that it did not find";
  if (record.value == 126) return "a shell's code for a program that it could not execute";
  return {};
}

std::string_view hint_of_cause(const FailureRecord& record) {
  switch (record.cause) {
    case Cause::kOutOfMemory:
    case Cause::kProbablyOutOfMemory:
      return "it is the host's memory, not a GPU's: fewer workers or data loaders, a smaller batch, or a higher limit";
    case Cause::kSharedMemoryFull:
      return "'docker run --shm-size=8g' or '--ipc=host', or fewer data loader workers; left-over files are in "
             "/dev/shm";
    case Cause::kCpuTimeLimit:
      return "'ulimit -t' limits the CPU time of each process; '--rlimit cpu=unlimited' where the hard limit allows it";
    case Cause::kEndedEarly:
      return record.detail.find(kMeeting) != std::string::npos
                 ? "every rank has to call init_process_group"
                 : "give every rank as many batches (DistributedSampler, drop_last), or let ranks run out with Join";
    case Cause::kOwnError:  // the machine adds nothing else to it
      return record.detail.empty() ? ""
                                   : "make room there, or name another folder with '--log-dir'; 'df -h' shows which";
    default:
      return {};
  }
}

}  // namespace

std::span<const HintRule> hint_table() { return kRules; }

const HintRule* find_hint(std::string_view line) {
  const auto holds = [&](std::string_view words) { return line.find(words) != std::string_view::npos; };
  const auto* const found = std::find_if(std::begin(kRules), std::end(kRules), [&](const HintRule& rule) {
    return holds(rule.words) && holds(rule.other_words);
  });
  return found == std::end(kRules) ? nullptr : found;
}

namespace {

/// What gives the hint when no rule asks for more than the record.
std::string general_hint_for(const FailureRecord& record, bool in_python, bool asked_for_core) {
  if (const std::string_view hint = hint_of_cause(record); !hint.empty()) return std::string(hint);
  if (record.cause == Cause::kExecFailed) return {};
  if (const HintRule* rule = find_hint(record.error)) return std::string(rule->hint);
  for (auto line = record.evidence.rbegin(); line != record.evidence.rend(); ++line) {
    if (const HintRule* rule = find_hint(*line)) return std::string(rule->hint);
  }
  if (std::string hint = hint_of_fault(record); !hint.empty()) return hint;
  if (const std::string_view hint = hint_of_ending(record); !hint.empty()) return std::string(hint);
  const bool by_itself = record.cause == Cause::kFatalSignal || record.cause == Cause::kOwnError;
  return by_itself ? hint_of_silent_fault(record, in_python, asked_for_core) : std::string();
}

}  // namespace

std::string hint_for(const FailureRecord& record, std::string_view python, bool asked_for_core) {
  constexpr std::string_view kUnknown = "'which python3' tells which runs";
  std::string hint = general_hint_for(record, !python.empty(), asked_for_core);
  const std::size_t at = hint.find(kUnknown);
  if (at != std::string::npos && !python.empty()) {
    hint.replace(at, kUnknown.size(), "it is '" + std::string(python) + "'");
  }
  return hint;
}

}  // namespace lrun::inline core
