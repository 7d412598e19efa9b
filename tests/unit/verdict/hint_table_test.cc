#include "verdict/hint_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <string>

namespace lrun {
namespace {

struct Example {
  std::string_view name;
  std::string_view line;  ///< as the program or library prints it
};

constexpr Example kExamples[] = {
    {"cuda-out-of-memory", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."},
    {"no-cuda-device", "RuntimeError: No CUDA GPUs: no CUDA-capable device is detected"},
    {"no-cuda-device", "RuntimeError: Found no NVIDIA driver on your system."},
    {"cuda-device-ordinal", "RuntimeError: CUDA error: invalid device ordinal"},
    {"cuda-device-assert", "RuntimeError: CUDA error: device-side assert triggered"},
    {"cuda-illegal-access", "RuntimeError: CUDA error: an illegal memory access was encountered"},
    {"cuda-launch-failure", "torch.AcceleratorError: CUDA error: unspecified launch failure"},
    {"tensors-on-two-devices", "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu"},
    {"cuda-architecture", "RuntimeError: CUDA error: no kernel image is available for execution on the device"},
    {"cuda-driver-version", "CUDA driver version is insufficient for CUDA runtime version"},
    {"cuda-fork", "RuntimeError: Cannot re-initialize CUDA in forked subprocess."},
    {"no-gpu-for-nccl", "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!"},
    {"nccl-shared-memory", "NCCL WARN Error while creating shared memory segment: No space left on device"},
    {"nccl-duplicate-gpu", "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 4000"},
    {"nccl-system-error", "ncclSystemError: System call (e.g. socket, malloc) or external library call failed"},
    {"nccl-unhandled", "ncclUnhandledCudaError: Call to CUDA function failed."},
    {"nccl-internal", "ncclInternalError: Internal check failed."},
    {"nccl-invalid-usage", "ncclInvalidUsage: This usually reflects invalid usage of NCCL library."},
    {"rank-missing", "torch.distributed.DistStoreError: wait timeout after 10000ms, keys: /default_pg/0//cpu//0/2"},
    {"collective-timeout", "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12)"},
    {"unused-parameters", "RuntimeError: Expected to have finished reduction in the prior iteration before"},
    {"collective-mismatch",
     "[enforce fail at gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 4. Received data size"},
    {"no-space", "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598"},
    {"shadowed-module", "ModuleNotFoundError: No module named 'torch.distributed'; 'torch' is not a package"},
    {"module-lrun", "ModuleNotFoundError: No module named 'lrun'"},
    {"gloo-interface", "RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:84] ifa != nullptr."},
    {"address-in-use", "port: 29500, code: -98, name: EADDRINUSE, message: address already in use"},
    {"address-in-use", "OSError: [Errno 98] Address already in use"},
    {"store-unreachable",
     "torch.distributed.DistNetworkError: The client socket has timed out after 8000ms while trying to connect to"},
    {"name-resolution", "socket.gaierror: [Errno -3] Temporary failure in name resolution"},
    {"shared-memory", "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error."},
    {"shared-memory", "write /dev/shm/x: No space left on device"},
    {"shared-memory", "unable to open shared memory object </torch_1> in read-write mode: Too many open files (24)"},
    {"data-loader-killed", "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed."},
    {"no-space", "OSError: [Errno 28] No space left on device: 'model.pt'"},
    {"file-limit", "OSError: [Errno 24] Too many open files: 'a'"},
    {"process-limit", "sh: 1: Cannot fork: Resource temporarily unavailable fork"},
    {"process-limit", "OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 8"},
    {"process-limit", "RuntimeError: can't start new thread"},
    {"memory-lock", "misc/ibvwrap.cc: Call to ibv_reg_mr failed"},
    {"host-memory", "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to"},
    {"host-memory", "std::bad_alloc: std::bad_alloc"},
    {"host-memory", "MemoryError: Unable to allocate 8.00 GiB for an array"},
    {"data-loader-gone", "  File \"/usr/lib/python3.11/multiprocessing/connection.py\", line 413, in _recv_bytes"},
    {"shadowed-torch", "AttributeError: module 'torch' has no attribute 'ones'"},
    {"python-home", "Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding"},
    {"no-input", "EOFError: EOF when reading a line"},
    {"missing-torch", "ModuleNotFoundError: No module named 'torch'"},
    {"missing-module", "ModuleNotFoundError: No module named 'einops'"},
    {"module-is-a-file",
     "/usr/bin/python3: Error while finding module specification for 'pkg/main.py' (ModuleNotFoundError: No module "
     "named 'pkg/main'). Try using 'pkg/main' instead of 'pkg/main.py' as the module name."},
    {"package-as-program",
     "/usr/bin/python3: No module named pkg.__main__; 'pkg' is a package and cannot be directly executed"},
    {"debugger-without-input", "bdb.BdbQuit"},
    {"launcher-in-script", "./run.sh: line 2: torchrun: command not found"},
    {"missing-variable", "  File \"<frozen os>\", line 679, in __getitem__"},
    {"missing-variable", "  File \"/usr/lib/python3.10/os.py\", line 680, in __getitem__"},
    {"rank-of-url", "ValueError: Error initializing torch.distributed using tcp:// rendezvous: rank parameter missing"},
    {"no-mpi", "RuntimeError: Distributed package doesn't have MPI built in. MPI is only included if you build"},
    {"missing-program-module", "/usr/bin/python3: No module named trian"},
    {"module-is-a-file",
     "/usr/bin/python3: Error while finding module specification for 'train.py' (ModuleNotFoundError: __path__ "
     "attribute not found on 'train' while trying to find 'train.py')"},
    {"relative-import", "ImportError: attempted relative import with no known parent package"},
    {"notebook-line", "    %matplotlib inline"},
    {"notebook-line", "    !pip install einops"},
    {"spawn-guard", "        current process has finished its bootstrapping phase."},
    {"placeholder", "ValueError: invalid literal for int() with base 10: '$rank'"},
    {"file-exists", "FileExistsError: [Errno 17] File exists: 'outputs/run1'"},
    {"device-variable", "KeyError: 'CUDA_VISIBLE_DEVICES'"},
    {"import-error", "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"},
    {"missing-library", "OSError: libfoo.so: cannot open shared object file: No such file or directory"},
    {"no-memory-for-library",
     "./a: error while loading shared libraries: libc.so.6: failed to map segment from shared object"},
    {"missing-library", "./a: error while loading shared libraries: libfoo.so: cannot open shared object file"},
    {"glibc-version", "./a: /lib/libc.so.6: version `GLIBC_2.38' not found (required by ./a)"},
    {"libstdcxx-version", "./a: libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by ./a)"},
    {"missing-symbol", "./a: symbol lookup error: ./a: undefined symbol: _ZN3c105ErrorC1E"},
    {"executable-format", "OSError: [Errno 8] Exec format error: './tool'"},
    {"permission", "sh: 1: ./tool: Permission denied"},
    {"windows-line-ends", "run.sh: line 3: $'train\\r': command not found"},
    {"windows-line-ends", "/usr/bin/env: \u2018bash\\r\u2019: No such file or directory"},
    {"windows-line-ends", "run.sh: ./train.sh: /bin/bash^M: bad interpreter: No such file or directory"},
    {"script-of-bash", "run.sh: 1: source: not found"},
    {"script-of-bash", "run.sh: 1: [[: not found"},
    {"command-not-found", "run.sh: line 3: nvidia-smi: command not found"},
    {"missing-file", "FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'"},
    {"illegal-instruction", "run.sh: line 2:  7 Illegal instruction     ./train"},
    {"thread-at-exit", "terminate called without an active exception"},
    {"two-dashes", "train.py: error: unrecognized arguments: -- --epochs 3"},
    {"late-rank", "RuntimeError: [unbound_buffer.cc:78] Timed out waiting 6000ms for recv operation to complete"},
    {"local-rank-argument", "train.py: error: unrecognized arguments: --local-rank=0"},
    {"local-rank-argument", "train.py: error: the following arguments are required: --local_rank"},
    {"foreign-rank", "KeyError: 'SLURM_PROCID'"},
    {"foreign-rank", "KeyError: 'OMPI_COMM_WORLD_RANK'"},
    {"foreign-rank", "KeyError: 'PMI_RANK'"},
    {"foreign-rank", "KeyError: 'SLURM_LOCALID'"},
    {"foreign-rank", "KeyError: 'SLURM_NTASKS'"},
    {"device-ids",
     "ValueError: DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-"
     "device GPU modules or CPU modules, but got device_ids [0]"},
    {"missing-rank", "ValueError: environment variable RANK expected, but not set"},
};

TEST(HintFor, OfAMissingFileDependsOnItsPath) {
  FailureRecord record;
  record.value = 1;
  record.error = "FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'";
  EXPECT_EQ(hint_for(record),
            "relative paths start where lrun was started; a file that rank 0 makes is there for the others after a "
            "barrier()");
  record.error = "FileNotFoundError: [Errno 2] No such file or directory: 'nvcc'";
  record.evidence = {"  File \"/usr/lib/python3.11/subprocess.py\", line 1955, in _execute_child", record.error};
  EXPECT_EQ(hint_for(record), "programs are looked for on PATH, and files where lrun was started");
  record.evidence.clear();
  record.error = "FileNotFoundError: [Errno 2] No such file or directory: '/data/x.bin'";
  EXPECT_EQ(hint_for(record), "'namei PATH' shows which part of the path is missing");
  record.error = "FileNotFoundError: no checkpoint in /data";
  EXPECT_EQ(hint_for(record), "'namei PATH' shows which part of the path is missing");
  record.error = "FileNotFoundError: no checkpoint";
  EXPECT_EQ(hint_for(record), "");
}

TEST(HintFor, OfKeysThatOneSideHasInAWrapperNamesIt) {
  const auto hint_of = [](const std::string& missing, const std::string& unexpected) {
    FailureRecord record;
    record.value = 1;
    record.error = "RuntimeError: Error(s) in loading state_dict for Net:";
    record.evidence = {record.error, "\tMissing key(s) in state_dict: " + missing,
                       "\tUnexpected key(s) in state_dict: " + unexpected};
    return hint_for(record);
  };
  EXPECT_EQ(hint_of("\"weight\", \"bias\". ", "\"module.weight\", \"module.bias\". "),
            "the checkpoint is of a DistributedDataParallel: load it into one, or take 'module.' off its keys");
  EXPECT_EQ(hint_of("\"module.weight\". ", "\"weight\". "),
            "the checkpoint is of the model inside: load it into 'model.module'");
  EXPECT_EQ(hint_of("\"module.b.weight\". ", "\"module.a.weight\". "), "") << "both have a wrapper";
}

TEST(HintFor, OfAVariableThatIsNearOneOfARankNamesThat) {
  const auto hint_of = [](const std::string& name) {
    FailureRecord record;
    record.value = 1;
    record.error = "KeyError: '" + name + "'";
    record.evidence = {"  File \"<frozen os>\", line 679, in __getitem__", record.error};
    return hint_for(record);
  };
  EXPECT_EQ(hint_of("LOCAL_RNAK"), "did you mean 'LOCAL_RANK'? lrun sets it for each worker");
  EXPECT_TRUE(hint_of("MASTER_ADDRESS").starts_with("did you mean 'MASTER_ADDR'?"));
  EXPECT_TRUE(hint_of("GLOBAL_RANK").starts_with("did you mean 'RANK'?"));
  EXPECT_TRUE(hint_of("MASTER_HOST").starts_with("did you mean 'MASTER_ADDR'?"));
  for (const char* const other : {"DATA_DIR", "LORA_RANK", "MODEL_RANK"}) {
    EXPECT_TRUE(hint_of(other).starts_with("the environment lacks this variable")) << other;
  }
  FailureRecord of_a_table;
  of_a_table.error = "KeyError: 'RNAK'";
  EXPECT_EQ(hint_for(of_a_table), "");
}

TEST(HintFor, OfCode127IsNotThatOfAnUnsetVariable) {
  FailureRecord record;
  record.value = 127;
  EXPECT_EQ(hint_for(record), "a shell exits with this code when it does not find a program");
  record.error = "run.sh: line 1: DATA: unbound variable";
  EXPECT_EQ(hint_for(record), "") << "bash under 'set -u'";
}

TEST(HintTable, FindsTheCureForWhatProgramsPrint) {
  for (const Example& example : kExamples) {
    const HintRule* const rule = find_hint(example.line);
    ASSERT_NE(rule, nullptr) << example.line;
    EXPECT_EQ(rule->name, example.name) << example.line;
  }
}

TEST(HintTable, HintsAtNothingInAPlainError) {
  for (const char* const line : {"ValueError: bad batch", "step 3 loss 0.2", "", "Connection closed by peer"}) {
    EXPECT_EQ(find_hint(line), nullptr) << line;
  }
}

TEST(HintTable, SpeaksAsLrunSpeaks) {
  for (const HintRule& rule : hint_table()) {
    EXPECT_FALSE(rule.hint.ends_with('.')) << rule.name;
    EXPECT_LE(rule.hint.size(), 120U) << rule.name;
    EXPECT_FALSE(rule.words.empty()) << rule.name;
  }
}

TEST(HintTable, HasAnExampleForEachRule) {
  std::set<std::string_view> shown;
  for (const Example& example : kExamples) shown.insert(example.name);
  std::set<std::string_view> rules;
  for (const HintRule& rule : hint_table()) rules.insert(rule.name);
  std::set<std::string_view> missing;
  std::set_difference(rules.begin(), rules.end(), shown.begin(), shown.end(), std::inserter(missing, missing.end()));
  EXPECT_EQ(missing, std::set<std::string_view>{}) << "every rule is tried";
}

TEST(HintFor, LooksAtTheErrorBeforeTheOtherLines) {
  FailureRecord record;
  record.value = 1;
  record.cause = Cause::kOwnError;
  record.error = "ModuleNotFoundError: No module named 'x'";
  record.evidence = {"Permission denied"};
  EXPECT_EQ(hint_for(record), find_hint(record.error)->hint);
  record.error = "ValueError: x";
  EXPECT_EQ(hint_for(record), find_hint("Permission denied")->hint);
}

TEST(HintFor, ACrashThatNobodyExplainsIsWhatToTypeNext) {
  FailureRecord record;
  record.rank = 1;
  record.cause = Cause::kFatalSignal;
  record.ending = FailureRecord::Ending::kSignaled;
  record.value = SIGSEGV;
  record.evidence = {"step 3"};
  EXPECT_EQ(hint_for(record), "'--debug-rank 1' runs it in a debugger; '--core' writes a core file for one");
  EXPECT_EQ(hint_for(record, "", true), "'--debug-rank 1' runs it in a debugger");
  EXPECT_EQ(hint_for(record, "/usr/bin/python3", true),
            "'--debug-rank 1 --wrap@1 \"gdb --args\"' runs it in a debugger")
      << "pdb does not see a signal";
  record.location = "train.py:40 in step";
  EXPECT_EQ(hint_for(record), "");
  record.location = "train+0x5678";
  record.evidence = {"lrun: SIGSEGV at address 0x10 in /home/me/train+0x5678"};
  EXPECT_EQ(hint_for(record), "'addr2line -Cfipe /home/me/train 0x5678' names the source line");
  record.evidence = {"lrun: SIGSEGV at address 0x10 in /home/me/my run/train+0x5678"};
  EXPECT_EQ(hint_for(record), "'addr2line -Cfipe '/home/me/my run/train' 0x5678' names the source line");
}

TEST(HintFor, AnEarlyEndIsHowRanksComeToTheSameNumberOfSteps) {
  FailureRecord record;
  record.cause = Cause::kEndedEarly;
  record.detail = "rank 0 waited for it in all_reduce at train.py:5: did it run fewer steps?";
  EXPECT_NE(hint_for(record).find("give every rank the same number of batches"), std::string::npos) << hint_for(record);
  record.detail = "rank 0 waited for it in init_process_group at train.py:5";
  EXPECT_EQ(hint_for(record), "every rank must call init_process_group");
}

TEST(HintFor, KnowsSomeSignalsAndCodesOfShells) {
  FailureRecord record;
  record.cause = Cause::kFatalSignal;
  record.ending = FailureRecord::Ending::kSignaled;
  record.value = SIGXCPU;
  EXPECT_EQ(hint_for(record), "'ulimit -t' limits the CPU time");
  record.value = SIGUSR1;
  EXPECT_EQ(hint_for(record), "");
  record.ending = FailureRecord::Ending::kExited;
  record.value = 127;
  EXPECT_EQ(hint_for(record), "a shell exits with this code when it does not find a program");
}

TEST(HintFor, KnowsWhatToDoWhenMemoryRunsOut) {
  FailureRecord record;
  record.cause = Cause::kOutOfMemory;
  EXPECT_NE(hint_for(record).find("the host, not a GPU, is out of memory"), std::string::npos);
  record.cause = Cause::kSharedMemoryFull;
  EXPECT_NE(hint_for(record).find("--shm-size"), std::string::npos);
}

TEST(HintFor, NamesThePythonThatRanTheProgram) {
  FailureRecord record;
  record.value = 1;
  record.error = "ModuleNotFoundError: No module named 'x'";
  EXPECT_EQ(hint_for(record),
            "install it for the Python that runs the program, or put its folder on PYTHONPATH; 'which python3' shows "
            "which one runs");
  EXPECT_EQ(hint_for(record, "/opt/py/bin/python"),

            "install it for the Python that runs the program, or put its folder on PYTHONPATH; this run used "
            "'/opt/py/bin/python'");
  record.error = "ModuleNotFoundError: No module named 'torch'";
  EXPECT_EQ(hint_for(record, "/opt/py/bin/python"),
            "this Python has no torch: install it, or name another Python with '--python PATH'; this run used "
            "'/opt/py/bin/python'");
  record.error = "CUDA out of memory";
  EXPECT_EQ(hint_for(record, "/opt/py/bin/python"), hint_for(record));
}

}  // namespace
}  // namespace lrun
