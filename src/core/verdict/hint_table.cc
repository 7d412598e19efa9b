// In: the record of a failed worker. Out: one line that says how to fix it. The verdict's text shows it.
#include "verdict/hint_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <iterator>
#include <optional>
#include <vector>

#include "base/nearest.h"
#include "base/shell_words.h"
#include "verdict/collective_name.h"
#include "verdict/native_error.h"

namespace lrun::inline core {
namespace {

constexpr std::string_view kRankVariables = "lrun sets RANK, LOCAL_RANK and WORLD_SIZE, wherever it runs";

constexpr std::string_view kMissingVariable =
    "the environment lacks this variable: set it before lrun, or write '--env NAME=VALUE'";
constexpr std::string_view kOwnRendezvous =
    "leave init_method out: then RANK, WORLD_SIZE and the address are those that lrun sets";
constexpr std::string_view kWindowsLineEnds = "the script has Windows line ends: 'dos2unix' fixes them";
constexpr std::string_view kNoRoom =
    "the host is out of memory: load a part in each rank, or use fewer workers; 'ulimit -v' may be the limit, too";
constexpr HintRule kRules[] = {
    {"cuda-out-of-memory", "CUDA out of memory", "",
     "the GPU is out of memory: use a smaller batch; 'nvidia-smi' shows what else uses it"},
    {"cuda-out-of-memory", "cudaErrorMemoryAllocation", "",
     "the GPU is out of memory: use a smaller batch; 'nvidia-smi' shows what else uses it"},
    {"no-cuda-device", "no CUDA-capable device is detected", "",
     "no GPU is visible: check 'nvidia-smi' and CUDA_VISIBLE_DEVICES"},
    {"no-cuda-device", "Found no NVIDIA driver", "",
     "no GPU driver is installed here: the program has to use the CPU where torch.cuda.is_available() is False"},
    {"cuda-device-ordinal", "invalid device ordinal", "",
     "the program asks for a GPU that it cannot see: use LOCAL_RANK, or device 0 with '--isolate-gpus'"},
    {"cuda-device-assert", "device-side assert triggered", "",
     "rerun with CUDA_LAUNCH_BLOCKING=1 to find the kernel; often a label or an index is out of range"},
    {"cuda-illegal-access", "an illegal memory access was encountered", "",
     "rerun with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the kernel"},
    {"cuda-launch-failure", "unspecified launch failure", "",
     "rerun with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the kernel"},
    {"tensors-on-two-devices", "Expected all tensors to be on the same device", "",
     "move the model and every batch to the same device, with '.to(device)'"},
    {"cuda-architecture", "no kernel image is available for execution", "",
     "this build of LibTorch does not support this GPU: install one that does"},
    {"cuda-driver-version", "CUDA driver version is insufficient", "",
     "the GPU driver is older than the CUDA runtime: update the driver, or use an older runtime"},
    {"cuda-fork", "Cannot re-initialize CUDA in forked subprocess", "",
     "start subprocesses with 'spawn', or do not use CUDA before the fork"},
    {"no-gpu-for-nccl", "ProcessGroupNCCL is only supported with GPUs", "",
     "no GPU is visible, and NCCL needs one: init_process_group('gloo') works on CPUs"},
    {"nccl-shared-memory", "NCCL", "No space left on device",
     "/dev/shm is too small for NCCL: use 'docker run --shm-size=8g' or '--ipc=host'"},
    {"nccl-duplicate-gpu", "Duplicate GPU detected", "",
     "two ranks use the same GPU: select it by LOCAL_RANK before the first CUDA call; ranks that share one need gloo"},
    {"nccl-system-error", "ncclSystemError", "",
     "NCCL_DEBUG=INFO shows the call that failed; often the network interface (NCCL_SOCKET_IFNAME) or memlock"},
    {"nccl-unhandled", "ncclUnhandledCudaError", "", "NCCL_DEBUG=INFO shows the CUDA call that failed"},
    {"nccl-internal", "ncclInternalError", "", "NCCL_DEBUG=INFO shows the call that failed"},
    {"nccl-invalid-usage", "ncclInvalidUsage", "",
     "often two ranks use the same GPU: select the device by LOCAL_RANK; NCCL_DEBUG=WARN shows more"},
    {"rank-missing", "wait timeout after", "/default_pg/0//cpu",
     "not all ranks reached init_process_group: its world_size has to be that of the variable WORLD_SIZE"},
    {"collective-timeout", "Watchdog caught collective operation timeout", "",
     "some rank did not take part: see what the others did; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 records the calls"},
    {"unused-parameters", "Expected to have finished reduction in the prior iteration", "",
     "some parameters were not used in the loss: DistributedDataParallel(find_unused_parameters=True)"},
    {"collective-mismatch", "enforce fail at", "op.preamble.length <= op.nbytes",
     "ranks gave one operation tensors of other sizes ('drop_last' evens out the last batch), or called different "
     "ones"},
    {"gloo-interface", "ifa != nullptr", "",
     "GLOO_SOCKET_IFNAME names an interface that this host does not have: see 'ip -brief address'"},
    {"address-in-use", "EADDRINUSE", "",
     "another program or rank uses the port: add LOCAL_RANK to the program's own; MASTER_PORT is free by default"},
    {"address-in-use", "Address already in use", "",
     "another program or rank uses the port: add LOCAL_RANK to the program's own; MASTER_PORT is free by default"},
    {"address-in-use", "address already in use", "",
     "another program or rank uses the port: add LOCAL_RANK to the program's own; MASTER_PORT is free by default"},
    {"store-unreachable", "The client socket has timed out after ", "",
     "nobody answers there: the program should take MASTER_ADDR and MASTER_PORT as lrun sets them, by 'env://'"},
    {"name-resolution", "Temporary failure in name resolution", "",
     "the host name cannot be resolved: use the address"},
    {"name-resolution", "Name or service not known", "", "no such host: check the name, or use the address"},
    {"shared-memory", "DataLoader worker", "Bus error",
     "/dev/shm is full: use 'docker run --shm-size=8g' or '--ipc=host', or fewer data loader workers"},
    {"shared-memory", "/dev/shm", "No space left on device",
     "/dev/shm is full: use 'docker run --shm-size=8g' or '--ipc=host', or delete leftover files there"},
    {"shared-memory", "unable to open shared memory object", "Too many open files",
     "raise 'ulimit -n', or call torch.multiprocessing.set_sharing_strategy('file_system')"},
    {"data-loader-killed", "DataLoader worker", "killed by signal: Killed",
     "a data loader worker was killed, usually for lack of memory: use fewer workers or a smaller prefetch"},
    {"no-space", "No space left on device", "", "a file system is full: 'df -h' shows which one"},
    {"no-space", "inline_container.cc", "unexpected pos",
     "the file could not be written whole: 'df -h' shows whether its file system is full"},
    {"no-space", "Disk quota exceeded", "", "the disk quota is used up: 'quota -s' shows it"},
    {"file-limit", "Too many open files", "",
     "raise the limit: '--rlimit nofile=65536', or 'ulimit -n 65536' before lrun"},
    {"process-limit", "Resource temporarily unavailable", "fork",
     "too many processes or threads: check 'ulimit -u' and the cgroup's pids.max"},
    {"process-limit", "pthread_create failed", "",
     "too many threads: set OMP_NUM_THREADS, or check 'ulimit -u' and the cgroup's pids.max"},
    {"process-limit", "can't start new thread", "",
     "too many threads: set OMP_NUM_THREADS, or check 'ulimit -u' and the cgroup's pids.max"},
    {"memory-lock", "ibv_reg_mr", "", "the memlock limit is too low for InfiniBand: run 'ulimit -l unlimited'"},
    {"memory-lock", "Cannot allocate memory", "ibv",
     "the memlock limit is too low for InfiniBand: run 'ulimit -l unlimited'"},
    {"host-memory", "DefaultCPUAllocator: can't allocate memory", "",
     "the host has no room for a tensor of this size: check its shape, and use a smaller batch or fewer workers"},
    {"host-memory", "std::bad_alloc", "", kNoRoom},
    {"host-memory", "MemoryError", "", kNoRoom},
    {"host-memory", "Cannot allocate memory", "", kNoRoom},
    {"data-loader-gone", "/multiprocessing/connection.py", "",
     "a process that the program started, often a data loader's worker, is gone: lack of memory kills them, too"},
    {"shadowed-torch", "module 'torch' has no attribute ", "",
     "a file or folder 'torch' may hide it: python3 -c 'import torch; print(torch.__file__)' shows which one is read"},
    {"python-home", "Fatal Python error: init_fs_encoding", "",
     "PYTHONHOME or PYTHONPATH may belong to another Python: unset them"},
    {"debugger-without-input", "bdb.BdbQuit", "",
     "workers have no input; 'lrun -n 1 --debug-rank 0' runs a single rank in pdb, on this terminal"},
    {"no-input", "EOFError: EOF when reading a line", "",
     "workers have no input: pass it as an argument, or by '--env NAME=VALUE'; '--stdin' gives lrun's to rank 0 alone"},
    {"missing-torch", "No module named 'torch'", "",
     "this Python has no torch: install it, or name another Python with '--python PATH'; 'which python3' shows which "
     "one runs"},
    {"module-is-a-file", "__path__ attribute not found on", "",
     "'-m' takes the name of a module, without '.py'; a module of one file has no parts behind a dot"},
    {"module-is-a-file", "Error while finding module specification for ", "Try using '",
     "'-m' takes the name of a module, with dots and without '/' and '.py'; or leave '-m' out"},
    {"shadowed-module", "No module named '", "' is not a package",
     "a file of that name hides the package: rename it; python3 -c 'import NAME; print(NAME.__file__)' shows which"},
    {"module-lrun", "No module named 'lrun'", "",
     "lrun is no module of Python: a program reads RANK, LOCAL_RANK and WORLD_SIZE, or calls init_process_group()"},
    {"missing-module", "No module named '", "",
     "install it for the Python that runs the program, or put its folder on PYTHONPATH; 'which python3' shows which "
     "one runs"},
    {"package-as-program", "is a package and cannot be directly executed", "",
     "name a module of it, as in '-m package.module', or give it a file __main__.py"},
    {"missing-program-module", "No module named ", "",
     "'-m' takes the name of a module of this folder, or of an installed one: check how it is spelled"},
    {"relative-import", "attempted relative import with no known parent package", "",
     "it is part of a package: start it by its module's name, as in 'lrun -m package.module'"},
    {"notebook-line", "%matplotlib", "", "lines with '%' or '!' belong to notebooks: leave them out of a script"},
    {"notebook-line", "!pip ", "", "lines with '%' or '!' belong to notebooks: leave them out of a script"},
    {"spawn-guard", "finished its bootstrapping phase", "",
     "put the start of processes below 'if __name__ == \"__main__\":', or leave it out, since lrun starts the ranks"},
    {"placeholder", "invalid literal for int() with base 10: '$", "",
     "of such words lrun replaces only '$local_rank'; the rank is in the variable RANK"},
    {"file-exists", "FileExistsError: ", "",
     "another rank or an earlier run made it: 'os.makedirs(…, exist_ok=True)', or rank 0 alone makes it before a "
     "barrier"},
    {"import-error", "ImportError: ", "cannot open shared object file",
     "a library that the module needs is missing: 'ldd' on the module's file shows which one"},
    {"missing-library", "OSError: ", "cannot open shared object file",
     "the library, or one that it needs, is missing: put its folder on LD_LIBRARY_PATH, and check it with 'ldd'"},
    {"no-memory-for-library", "error while loading shared libraries", "failed to map segment",
     "its address space is limited ('--rlimit as', 'ulimit -v'), or the file system is mounted with 'noexec'"},
    {"missing-library", "error while loading shared libraries", "",
     "'ldd PROGRAM' lists what is missing; put its folder on LD_LIBRARY_PATH or in the program's rpath"},
    {"glibc-version", "version `GLIBC_", "not found",
     "the program was built on a newer system: build it here, or run it in its container"},
    {"libstdcxx-version", "version `GLIBCXX_", "not found",
     "the program was built with a newer compiler: put that compiler's libstdc++ on LD_LIBRARY_PATH"},
    {"missing-symbol", "undefined symbol: ", "",
     "a library is not the version that the program was built with; often two LibTorch are on LD_LIBRARY_PATH"},
    {"windows-line-ends", "\\r': command not found", "", kWindowsLineEnds},
    {"windows-line-ends", "env: ", "\\r", kWindowsLineEnds},
    {"windows-line-ends", "^M: bad interpreter", "", kWindowsLineEnds},
    {"script-of-bash", ": source: not found", "", "it is a word of bash: start the script with 'bash' and not 'sh'"},
    {"script-of-bash", ": [[: not found", "", "it is a word of bash: start the script with 'bash' and not 'sh'"},
    {"executable-format", "Exec format error", "", "the program was built for another processor architecture"},
    {"permission", "Permission denied", "",
     "'ls -l' shows the owner and the permissions; a script needs 'chmod +x' to be executed"},
    {"permission", "PermissionError: ", "", "'ls -l' shows the owner and the permissions"},
    {"launcher-in-script", "torchrun: command not found", "",
     "write 'lrun' for 'torchrun' in the script, and start the script without lrun"},
    {"command-not-found", ": command not found", "", "the script calls a program that is not on PATH"},
    {"missing-file", "FileNotFoundError: ", "'/", "'namei PATH' shows which part of the path is missing"},
    {"missing-file", "FileNotFoundError: ", " /", "'namei PATH' shows which part of the path is missing"},
    {"missing-file", "FileNotFoundError: ", ": '",
     "relative paths start where lrun was started; a file that rank 0 makes is there for the others after a barrier()"},
    {"illegal-instruction", "Illegal instruction", "", "the program uses instructions that this processor lacks"},
    {"thread-at-exit", "terminate called without an active exception", "",
     "a thread was still running at exit; a torch program calls destroy_process_group() before it ends"},
    {"two-dashes", "unrecognized arguments: -- ", "", "leave '--' out: all words behind PROGRAM are its own"},
    {"late-rank", "Timed out waiting ", "ms for ",
     "a rank came later than its group waits: give init_process_group() a longer 'timeout'"},
    {"local-rank-argument", "unrecognized arguments: --local", "", "read LOCAL_RANK from the environment instead"},
    {"local-rank-argument", "arguments are required: --local", "",
     "read LOCAL_RANK from the environment, or write it behind PROGRAM: '--local_rank \\$local_rank'"},
    {"device-variable", "KeyError: 'CUDA_VISIBLE_DEVICES'", "",
     "the number of a rank's device is in LOCAL_RANK; '--isolate-gpus' sets CUDA_VISIBLE_DEVICES for each rank"},
    {"foreign-rank", "KeyError: 'SLURM_PROCID'", "", kRankVariables},
    {"foreign-rank", "KeyError: 'SLURM_LOCALID'", "", kRankVariables},
    {"foreign-rank", "KeyError: 'SLURM_NTASKS'", "", kRankVariables},
    {"foreign-rank", "KeyError: 'OMPI_COMM_WORLD_", "", kRankVariables},
    {"foreign-rank", "KeyError: 'PMI_", "", kRankVariables},
    {"foreign-rank", "KeyError: 'HOROVOD_", "", "'--strategy horovod' gives workers the variables of horovodrun"},
    {"missing-variable", "File \"<frozen os>\", line ", "in __getitem__", kMissingVariable},
    {"missing-variable", "/os.py\", line ", "in __getitem__", kMissingVariable},
    {"rank-of-url", "rendezvous: rank parameter missing", "", kOwnRendezvous},
    {"rank-of-url", "rendezvous: world size parameter missing", "", kOwnRendezvous},
    {"no-mpi", "Distributed package doesn't have MPI built in", "",
     "init_process_group('gloo') works on CPUs and 'nccl' on GPUs, without MPI"},
    {"device-ids", "DistributedDataParallel device_ids", "",
     "move the model to its GPU before DistributedDataParallel; on CPUs leave device_ids out"},
    {"missing-rank", "environment variable RANK expected", "", "the program cleared its environment: lrun sets RANK"},
};

/// How to find the source line of a fault of which only the address is known.
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

/// Signals of a fault in the program.
constexpr std::array kFaults{SIGSEGV, SIGABRT, SIGFPE, SIGTRAP, SIGBUS, SIGILL};

/// For a fault without a message. \param in_python  --debug-rank starts pdb, which does not catch signals: gdb does
std::string hint_of_silent_fault(const FailureRecord& record, bool in_python, bool asked_for_core) {
  const bool is_fault = std::any_of(kFaults.begin(), kFaults.end(), [&](int fault) { return record.ended_by(fault); });
  const bool silent = record.error.empty() && record.location.empty();
  if (!is_fault || !silent) return {};
  const std::string debugger = in_python ? fmt::format(" --wrap@{} \"gdb --args\"", record.rank) : std::string();
  return fmt::format("'--debug-rank {}{}' runs it in a debugger{}", record.rank, debugger,
                     asked_for_core ? "" : "; '--core' writes a core file for one");
}

std::string_view hint_of_signal(int signal_number) {
  switch (signal_number) {
    case SIGTERM:
    case SIGKILL:
      return "lrun did not send it: check the scheduler's log and 'dmesg' for what did";
    case SIGBUS:
      return "often /dev/shm was full ('df -h /dev/shm'), or a mapped file was truncated";
    case SIGILL:
      return "often the program was built for a newer processor: build it here, or without '-march=native'";
    case SIGXCPU:
      return "'ulimit -t' limits the CPU time";
    case SIGXFSZ:
      return "'ulimit -f' limits the size of files";
    case SIGSYS:
      return "a seccomp profile, often a container's, forbids a system call: 'dmesg' may name it";
    default:
      return {};
  }
}

/// The hint by exit code or signal alone, when no rule applies to the output.
std::string_view hint_of_ending(const FailureRecord& record) {
  if (record.ending == FailureRecord::Ending::kSignaled) return hint_of_signal(record.value);
  if (record.ending != FailureRecord::Ending::kExited) return {};
  if (record.value == 127 && record.error.ends_with(": unbound variable")) return {};  // bash with 'set -u'
  if (record.value == 124) return "'timeout' exits with this code when the time is up";
  if (record.value == 127) return "a shell exits with this code when it does not find a program";
  if (record.value == 126) return "a shell exits with this code when it cannot execute a program";
  return {};
}

std::string_view hint_of_cause(const FailureRecord& record) {
  switch (record.cause) {
    case Cause::kOutOfMemory:
    case Cause::kProbablyOutOfMemory:
      return "the host, not a GPU, is out of memory: use fewer workers or data loaders, a smaller batch, or a higher "
             "limit";
    case Cause::kSharedMemoryFull:
      return "use 'docker run --shm-size=8g' or '--ipc=host', or fewer data loader workers, or delete leftover files "
             "there";
    case Cause::kCpuTimeLimit:
      return "'ulimit -t' limits the CPU time of each process; if the hard limit allows it, '--rlimit cpu=unlimited' "
             "lifts it";
    case Cause::kEndedEarly:
      return record.detail.find(kInitProcessGroup) != std::string::npos ? "every rank must call init_process_group"
             : record.detail.find(" in barrier") != std::string::npos
                 ? "every rank must call barrier(): take it out of 'if rank == 0'"
                 : "give every rank the same number of batches (DistributedSampler, drop_last), or let ranks end early "
                   "with Join";
    case Cause::kOwnError:  // its detail is always a full folder
      return record.detail.empty()
                 ? ""
                 : "make room there, or choose another folder with '--log-dir'; 'df -h' shows the free space";
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

/// They differ by at most one letter, or two that are swapped.
bool is_one_edit_away(std::string_view one, std::string_view other) {
  while (!one.empty() && !other.empty() && one.front() == other.front()) one.remove_prefix(1), other.remove_prefix(1);
  while (!one.empty() && !other.empty() && one.back() == other.back()) one.remove_suffix(1), other.remove_suffix(1);
  const bool are_swapped = one.size() == 2 && other.size() == 2 && one[0] == other[1] && one[1] == other[0];
  return are_swapped || (one.size() <= 1 && other.size() <= 1);
}

/// The variable that lrun sets and that is meant by the name in "KeyError: 'LOCAL_RNAK'"; empty: none.
std::string_view variable_meant_in(std::string_view error) {
  struct Name {
    std::string_view theirs;
    std::string_view ours;
  };
  constexpr Name kNames[] = {{"RANK", "RANK"},
                             {"GLOBAL_RANK", "RANK"},
                             {"LOCAL_RANK", "LOCAL_RANK"},
                             {"NODE_RANK", "NODE_RANK"},
                             {"WORLD_SIZE", "WORLD_SIZE"},
                             {"LOCAL_WORLD_SIZE", "LOCAL_WORLD_SIZE"},
                             {"MASTER_ADDR", "MASTER_ADDR"},
                             {"MASTER_ADDRESS", "MASTER_ADDR"},
                             {"MASTER_HOST", "MASTER_ADDR"},
                             {"MASTER_PORT", "MASTER_PORT"}};
  constexpr std::string_view kBefore = "KeyError: '";
  if (!error.starts_with(kBefore)) return {};
  const std::string_view rest = error.substr(kBefore.size());
  const std::string_view written = rest.substr(0, rest.find('\''));
  const auto* const meant = std::find_if(std::begin(kNames), std::end(kNames),
                                         [&](const Name& name) { return is_one_edit_away(name.theirs, written); });
  return meant == std::end(kNames) ? std::string_view() : meant->ours;
}

/// The rest of the line that has `words`; empty: none has.
std::string_view behind(std::string_view words, const std::vector<std::string>& lines) {
  for (const std::string_view line : lines) {
    const std::size_t at = line.find(words);
    if (at != std::string_view::npos) return line.substr(at + words.size());
  }
  return {};
}

/// For a checkpoint of DistributedDataParallel, whose keys begin with 'module.', that is loaded into a plain model, or
/// the other way round.
std::string_view hint_about_keys(const std::vector<std::string>& evidence) {
  const std::string_view missing = behind("Missing key(s) in state_dict: ", evidence);
  const std::string_view unexpected = behind("Unexpected key(s) in state_dict: ", evidence);
  const auto are_wrapped = [](std::string_view keys) { return keys.starts_with("\"module."); };
  if (missing.empty() || unexpected.empty() || are_wrapped(missing) == are_wrapped(unexpected)) return {};
  return are_wrapped(unexpected)
             ? "the checkpoint is of a DistributedDataParallel: load it into one, or take 'module.' off its keys"
             : "the checkpoint is of the model inside: load it into 'model.module'";
}

/// subprocess has not found it.
bool is_of_program(const std::vector<std::string>& evidence) { return !behind("subprocess.py", evidence).empty(); }

/// The hint of a rule, or a better one for what the worker's error names.
std::string hint_of(const HintRule& rule, const FailureRecord& record) {
  if (rule.name == "missing-file" && is_of_program(record.evidence)) {
    return "programs are looked for on PATH, and files where lrun was started";
  }
  const std::string_view meant = rule.name == "missing-variable" ? variable_meant_in(record.error) : "";
  return meant.empty() ? std::string(rule.hint) : did_you_mean(meant) + " lrun sets it for each worker";
}

/// The hint by the record alone, whatever the interpreter is called.
std::string general_hint_for(const FailureRecord& record, bool in_python, bool asked_for_core) {
  if (const std::string_view hint = hint_of_cause(record); !hint.empty()) return std::string(hint);
  if (record.cause == Cause::kExecFailed) return {};
  if (const std::string_view hint = hint_about_keys(record.evidence); !hint.empty()) return std::string(hint);
  if (const HintRule* rule = find_hint(record.error)) return hint_of(*rule, record);
  for (auto line = record.evidence.rbegin(); line != record.evidence.rend(); ++line) {
    if (line->find("Warning: ") != std::string::npos) continue;  // torch's about a missing numpy
    if (const HintRule* rule = find_hint(*line)) return hint_of(*rule, record);
  }
  if (std::string hint = hint_of_fault(record); !hint.empty()) return hint;
  if (const std::string_view hint = hint_of_ending(record); !hint.empty()) return std::string(hint);
  const bool by_itself = record.cause == Cause::kFatalSignal || record.cause == Cause::kOwnError;
  return by_itself ? hint_of_silent_fault(record, in_python, asked_for_core) : std::string();
}

}  // namespace

std::string hint_for(const FailureRecord& record, std::string_view python, bool asked_for_core) {
  constexpr std::string_view kUnknown = "'which python3' shows which one runs";
  std::string hint = general_hint_for(record, !python.empty(), asked_for_core);
  const std::size_t at = hint.find(kUnknown);
  if (at != std::string::npos && !python.empty()) {
    hint.replace(at, kUnknown.size(), "this run used '" + std::string(python) + "'");
  }
  return hint;
}

}  // namespace lrun::inline core
