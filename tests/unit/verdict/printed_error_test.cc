#include "verdict/printed_error.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

using Lines = std::vector<std::string>;

TEST(PrintedError, AreTheInnermostFrameAndTheExceptionOfAPythonTraceback) {
  const PrintedError words = find_printed_error({
      "step 3 loss 0.2",
      "Traceback (most recent call last):",
      "  File \"/home/me/train.py\", line 40, in <module>",
      "    main()",
      "  File \"/home/me/train.py\", line 12, in step",
      "    raise ValueError(\"bad batch\")",
      "ValueError: bad batch",
  });
  EXPECT_EQ(words.error, "ValueError: bad batch");
  EXPECT_EQ(words.location, "train.py:12 in step");
  EXPECT_EQ(words.lines, (Lines{"  File \"/home/me/train.py\", line 12, in step", "    raise ValueError(\"bad batch\")",
                                "ValueError: bad batch"}));
}

TEST(PrintedError, AreReadThroughTheRankPrefixThatTorchPutsBeforeEachLine) {
  const PrintedError words = find_printed_error({
      "[rank1]: Traceback (most recent call last):",
      "[rank1]:   File \"a.py\", line 1, in <module>",
      "[rank1]:     1 / 0",
      "[rank1]: ZeroDivisionError: division by zero",
  });
  EXPECT_EQ(words.error, "ZeroDivisionError: division by zero");
  EXPECT_EQ(words.location, "a.py:1") << "the module itself needs no name";
}

TEST(PrintedError, AreFoundWhereTheBeginningOfTheTracebackWasNotKept) {
  const PrintedError words = find_printed_error({
      "[rank1]:     return function(*args, **kwargs)",
      "[rank1]:            ^^^^^^^^",
      "[rank1]:   File \"/venv/lib/python3.11/site-packages/lightning/strategies/strategy.py\", line 634, in forward",
      "[rank1]:     out = method(*_args, **_kwargs)",
      "[rank1]:   File \"/home/me/train.py\", line 6, in training_step",
      "[rank1]:     raise ValueError(\"bad batch\")",
      "[rank1]: ValueError: bad batch",
  });
  EXPECT_EQ(words.error, "ValueError: bad batch");
  EXPECT_EQ(words.location, "train.py:6 in training_step");
  EXPECT_EQ(find_printed_error({"  File \"a.py\", line 1, in f"}).error, "");
  EXPECT_EQ(find_printed_error({"    return f()", "ValueError: x"}).error, "")
      << "there is no frame, it may be a print";
  EXPECT_EQ(find_printed_error({"epoch 1", "  File \"a.py\", line 1, in f", "ValueError: x"}).error, "")
      << "a list of files is no traceback";
}

TEST(PrintedError, AreLocatedInTheUsersOwnCode) {
  const PrintedError words = find_printed_error({
      "Traceback (most recent call last):",
      "  File \"/home/me/train.py\", line 40, in step",
      "    return layer(x)",
      "  File \"/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py\", line 114, in forward",
      "    return F.linear(input, self.weight, self.bias)",
      "           ^^^^^^^^",
      "RuntimeError: mat1 and mat2 shapes cannot be multiplied",
  });
  EXPECT_EQ(words.location, "train.py:40 in step");
  ASSERT_EQ(words.lines.size(), 6U) << "and the innermost frame is shown as well";
  EXPECT_EQ(words.lines[1], "    return layer(x)");
  EXPECT_EQ(words.lines[3], "    return F.linear(input, self.weight, self.bias)");
  EXPECT_EQ(find_printed_error({"Traceback (most recent call last):", "  File \"train.py\", line 2, in <module>",
                                "  File \"/src/torch/cuda/__init__.py\", line 478, in _lazy_init", "RuntimeError: x"})
                .location,
            "train.py:2");
}

TEST(PrintedError, OfAGroupOfExceptionsAreItsFirstMember) {
  const PrintedError words = find_printed_error({
      "  + Exception Group Traceback (most recent call last):",
      "  |   File \"/home/me/train.py\", line 40, in main",
      "  |     async with asyncio.TaskGroup() as tasks:",
      "  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)",
      "  +-+---------------- 1 ----------------",
      "    | Traceback (most recent call last):",
      "    |   File \"/home/me/train.py\", line 12, in load",
      "    |     raise ValueError(\"bad batch\")",
      "    | ValueError: bad batch",
      "    +---------------- 2 ----------------",
      "    | TypeError: no",
      "    +------------------------------------",
  });
  EXPECT_EQ(words.error, "ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions): ValueError: bad batch");
  EXPECT_EQ(words.location, "train.py:40 in main");
  EXPECT_EQ(words.lines,
            (Lines{"  File \"/home/me/train.py\", line 40, in main", "    async with asyncio.TaskGroup() as tasks:",
                   "ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)", "ValueError: bad batch"}));
}

TEST(PrintedError, OfAChainOfExceptionsAreTheLast) {
  const PrintedError words = find_printed_error({
      "Traceback (most recent call last):",
      "  File \"a.py\", line 2, in f",
      "KeyError: 'x'",
      "",
      "During handling of the above exception, another exception occurred:",
      "",
      "Traceback (most recent call last):",
      "  File \"a.py\", line 4, in g",
      "RuntimeError: no x",
  });
  EXPECT_EQ(words.error, "RuntimeError: no x");
  EXPECT_EQ(words.location, "a.py:4 in g");
}

TEST(PrintedError, OfADataLoaderAreThoseOfItsWorkerProcess) {
  const PrintedError words = find_printed_error({
      "Traceback (most recent call last):",
      "  File \"/lib/torch/utils/data/dataloader.py\", line 700, in __next__",
      "    data = self._next_data()",
      "IndexError: Caught IndexError in DataLoader worker process 0.",
      "Original Traceback (most recent call last):",
      "  File \"/home/me/data.py\", line 9, in __getitem__",
      "    return self.rows[i]",
      "IndexError: list index out of range",
  });
  EXPECT_EQ(words.error, "IndexError: list index out of range");
  EXPECT_EQ(words.location, "data.py:9 in __getitem__");
}

TEST(PrintedError, AreNotWhatTheInterpreterOnlyIgnored) {
  const PrintedError words = find_printed_error({
      "Traceback (most recent call last):",
      "  File \"a.py\", line 1, in <module>",
      "ValueError: the cause",
      "Exception ignored in: <function Pool.__del__ at 0x7f>",
      "Traceback (most recent call last):",
      "  File \"pool.py\", line 271, in __del__",
      "AttributeError: noise at the end",
  });
  EXPECT_EQ(words.error, "ValueError: the cause");
}

TEST(PrintedError, HaveTheReasonThatNcclGivesBelowItsOtherLines) {
  const PrintedError words = find_printed_error({
      "[rank1]: Traceback (most recent call last):",
      "[rank1]:   File \"/home/me/train.py\", line 31, in <module>",
      "[rank1]:     dist.all_reduce(t)",
      "[rank1]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, invalid usage",
      "[rank1]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
      "[rank1]: Last error:",
      "[rank1]: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60",
  });
  EXPECT_EQ(
      words.error,
      "torch.distributed.DistBackendError: NCCL: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60");
  EXPECT_EQ(words.lines.back(), "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60");
}

TEST(PrintedError, OfALostPeerKeepTheWordsOfNccl) {
  const PrintedError words = find_printed_error({
      "Traceback (most recent call last):",
      "  File \"/home/me/train.py\", line 31, in <module>",
      "    dist.all_reduce(t)",
      ("torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, remote process exited or there was a "
       "network error, NCCL version 2.28.9"),
      "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
      "Last error:",
      "socketProgressOpt: Call to recv failed",
  });
  EXPECT_NE(words.error.find("remote process exited"), std::string::npos) << words.error;
}

/// As torch 2.11 prints an error of CUDA.
void add_error_of_cuda(Lines& lines, const std::string& prefix, const std::string& first) {
  lines.push_back(prefix + first + "CUDA error: an illegal memory access was encountered");
  for (const char* const advice :
       {"Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/ for more information.",
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
        "incorrect.",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."}) {
    lines.push_back(prefix + advice);
  }
  lines.emplace_back();
}

TEST(PrintedError, OfCudaAreTheExceptionAlsoWhereTheWatchdogAbortsWithTheSameOne) {
  Lines lines{
      "[rank0]: Traceback (most recent call last):",
      "[rank0]:   File \"/home/me/train.py\", line 15, in step",
      "[rank0]:     loss.item()",
  };
  add_error_of_cuda(lines, "[rank0]: ", "torch.AcceleratorError: ");
  add_error_of_cuda(
      lines, "",
      "[rank0]:[E1126 06:55:15.304432724 ProcessGroupNCCL.cpp:2093] [PG ID 0 PG GUID 0(default_pg) Rank 0] "
      "Process group watchdog thread terminated with exception: ");
  lines.emplace_back(
      "Exception raised from c10_cuda_check_implementation at CUDAException.cpp:44 (most recent first):");
  lines.emplace_back("frame #0: c10::Error::Error(c10::SourceLocation) + 0x9d (0x7f10 in /x/libc10.so)");
  lines.emplace_back("terminate called after throwing an instance of 'c10::DistBackendError'");
  add_error_of_cuda(lines, "",
                    "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog thread terminated with "
                    "exception: ");
  const Lines without_report = lines;
  lines.insert(lines.end(), {"Fatal Python error: Aborted", "",
                             "Current thread 0x00007f158aa64b80 (most recent call first):", "  <no Python frame>"});
  for (const Lines& printed : {without_report, lines}) {
    const PrintedError words = find_printed_error(printed);
    EXPECT_EQ(words.error, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered");
    EXPECT_EQ(words.location, "train.py:15 in step");
  }
}

TEST(PrintedError, OfCudaAreTheAbortWhereAnotherExceptionCameBefore) {
  Lines lines{"Traceback (most recent call last):",
              "  File \"/home/me/train.py\", line 15, in step",
              "    loss.item()",
              "ValueError: handled",
              "step 16",
              "step 17",
              "step 18"};
  lines.emplace_back("terminate called after throwing an instance of 'c10::AcceleratorError'");
  add_error_of_cuda(lines, "", "  what():  ");
  EXPECT_EQ(find_printed_error(lines).error,
            "c10::AcceleratorError: CUDA error: an illegal memory access was encountered");
}

TEST(PrintedError, HaveWhatAKernelAsserted) {
  const std::string asserted =
      "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:111: operator(): block: [0,0,0], thread: [0,0,0] Assertion "
      "`-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"` failed.";
  const PrintedError words = find_printed_error({
      asserted,
      "Traceback (most recent call last):",
      "  File \"/home/me/train.py\", line 9, in <module>",
      "    torch.cuda.synchronize()",
      "torch.AcceleratorError: CUDA error: device-side assert triggered",
      "CUDA kernel errors might be asynchronously reported at some other API call.",
      "",
  });
  EXPECT_EQ(words.error, "torch.AcceleratorError: CUDA error: device-side assert triggered");
  EXPECT_EQ(words.location, "train.py:9");
  EXPECT_EQ(words.lines.front(), asserted);
}

TEST(PrintedError, AreNotWhatCythonIgnoresWhileItFreesObjects) {
  const Lines freeing{
      "Traceback (most recent call last):",
      "  File \"cupy_backends/cuda/api/driver.pyx\", line 247, in cupy_backends.cuda.api.driver.moduleUnload",
      "  File \"cupy_backends/cuda/api/driver.pyx\", line 73, in cupy_backends.cuda.api.driver.check_status",
      "cupy_backends.cuda.api.driver.CUDADriverError: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access",
  };
  Lines lines{
      "Traceback (most recent call last):",
      "  File \"/home/me/train.py\", line 15, in <module>",
      "    torch.cuda.synchronize()",
      "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
      "CUDA kernel errors might be asynchronously reported at some other API call.",
      "",
  };
  for (int i = 0; i < 3; ++i) {  // Cython reports each of them twice
    lines.insert(lines.end(), freeing.begin(), freeing.end());
    lines.emplace_back("Exception ignored in: 'cupy.cuda.function.Module.__dealloc__'");
    lines.insert(lines.end(), freeing.begin(), freeing.end());
  }
  const PrintedError words = find_printed_error(lines);
  EXPECT_EQ(words.error, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered");
  EXPECT_EQ(words.location, "train.py:15");
}

TEST(PrintedError, OfAProgramThatPythonCannotReadAreTheSyntaxError) {
  const PrintedError words = find_printed_error({
      "  File \"/home/me/train.py\", line 3",
      "    def f(:",
      "          ^",
      "SyntaxError: invalid syntax",
  });
  EXPECT_EQ(words.error, "SyntaxError: invalid syntax");
  EXPECT_EQ(words.location, "train.py:3");
  EXPECT_EQ(words.lines.size(), 4U);
}

TEST(PrintedError, OfACrashUnderFaulthandlerAreTheInnermostFrame) {
  const PrintedError words = find_printed_error({
      "Fatal Python error: Segmentation fault",
      "",
      "Current thread 0x00007f (most recent call first):",
      "  File \"/lib/ctypes/__init__.py\", line 519 in string_at",
      "  File \"/home/me/a.py\", line 3 in <module>",
  });
  EXPECT_EQ(words.error, "Fatal Python error: Segmentation fault");
  EXPECT_EQ(words.location, "__init__.py:519 in string_at");
}

TEST(PrintedError, OfAMessageOfSeveralLinesKeepSome) {
  const PrintedError words = find_printed_error({
      "Traceback (most recent call last):",
      "  File \"a.py\", line 1, in <module>",
      "RuntimeError: first",
      "second",
      "third",
      "fourth",
  });
  EXPECT_EQ(words.error, "RuntimeError: first");
  EXPECT_EQ(words.lines, (Lines{"  File \"a.py\", line 1, in <module>", "RuntimeError: first", "second", "third"}));
}

TEST(PrintedError, OfAMessageThatEndsWithAColonHaveTheNextLine) {
  const auto error_of = [](const std::string& next) {
    return find_printed_error({"Traceback (most recent call last):", "  File \"a.py\", line 1, in <module>",
                               "RuntimeError: Error(s) in loading state_dict for Net:", next})
        .error;
  };
  EXPECT_EQ(error_of("\tsize mismatch for weight"),
            "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for weight");
  EXPECT_EQ(error_of(""), "RuntimeError: Error(s) in loading state_dict for Net:");
}

TEST(PrintedError, AreTheTypeAndTheWhatOfAnUncaughtCxxException) {
  const PrintedError words = find_printed_error({
      "step 7",
      "terminate called after throwing an instance of 'std::runtime_error'",
      "  what():  no such file: weights.bin",
  });
  EXPECT_EQ(words.error, "std::runtime_error: no such file: weights.bin");
  EXPECT_EQ(words.lines.size(), 2U);
}

TEST(PrintedError, LeaveTheStackOfAC10ErrorOut) {
  const PrintedError words = find_printed_error({
      "terminate called after throwing an instance of 'c10::Error'",
      "  what():  mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
      "Exception raised from meta at LinearAlgebra.cpp:208 (most recent call first):",
      "frame #0: c10::Error::Error()",
  });
  EXPECT_EQ(words.error, "c10::Error: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
  EXPECT_EQ(words.lines.size(), 2U);
}

TEST(PrintedError, AreAThrownValueThatHasNoWhat) {
  EXPECT_EQ(find_printed_error({"terminate called after throwing an instance of 'int'", "Aborted"}).error,
            "uncaught exception of type 'int'");
}

TEST(PrintedError, AreAFailedAssertionAndItsPlace) {
  const PrintedError words =
      find_printed_error({"train: /src/model/net.cc:42: void Net::step(int): Assertion `batch > 0' failed."});
  EXPECT_EQ(words.error, "Assertion `batch > 0' failed");
  EXPECT_EQ(words.location, "net.cc:42");
  EXPECT_EQ(find_printed_error(
                {"/usr/include/c++/12/bits/stl_vector.h:1123: reference at(): Assertion '__n < size()' failed."})
                .location,
            "stl_vector.h:1123");
}

TEST(PrintedError, AreASanitizersFindingWithoutThePid) {
  const PrintedError words = find_printed_error({
      "==4242==ERROR: AddressSanitizer: heap-use-after-free on address 0x1",
      "    #0 0x1 in main a.cc:3",
      "SUMMARY: AddressSanitizer: heap-use-after-free a.cc:3 in main",
  });
  EXPECT_EQ(words.error, "AddressSanitizer: heap-use-after-free");
  EXPECT_EQ(words.location, "a.cc:3 in main");
  EXPECT_EQ(words.lines.back(), "SUMMARY: AddressSanitizer: heap-use-after-free a.cc:3 in main");
}

TEST(PrintedError, HaveAPlaceOnlyWhereASanitizersSummaryNamesOne) {
  const auto error_of = [](const std::string& summary) {
    const PrintedError words = find_printed_error({"==1==ERROR: AddressSanitizer: x", "SUMMARY: " + summary});
    return words.error + "|" + words.location;
  };
  EXPECT_EQ(error_of("AddressSanitizer: 40 byte(s) leaked in 1 allocation(s)."),
            "AddressSanitizer: 40 byte(s) leaked in 1 allocation(s).|");
  EXPECT_EQ(error_of("AddressSanitizer: SEGV (/tmp/a.out+0x11b3) (BuildId: dead) in main"),
            "AddressSanitizer: SEGV (/tmp/a.out+0x11b3) (BuildId: dead) in main|");
  EXPECT_EQ(error_of("AddressSanitizer: SEGV /home/me/x.cc:3:7 in f(int)"),
            "AddressSanitizer: SEGV|x.cc:3:7 in f(int)");
  EXPECT_EQ(find_printed_error({"a.cc:2:4: runtime error: signed integer overflow",
                                "SUMMARY: UndefinedBehaviorSanitizer: undefined-behavior a.cc:2:4 in "})
                .error,
            "a.cc:2:4: runtime error: signed integer overflow");
}

TEST(PrintedError, AreNoExceptionWhereASignalEndedTheProgram) {
  const std::vector<std::string> lines{"Traceback (most recent call last):", "  File \"x.py\", line 1, in f",
                                       "ValueError: handled, retrying"};
  EXPECT_NE(find_printed_error(lines).error, "");
  EXPECT_EQ(find_printed_error(lines, false).error, "");
  EXPECT_EQ(find_printed_error({"Fatal Python error: Segmentation fault"}, false).error,
            "Fatal Python error: Segmentation fault");
}

TEST(PrintedError, AreWhatTheInterpreterSaysBeforeAnyProgramRuns) {
  EXPECT_EQ(find_printed_error({"/usr/bin/python3: Error while finding module specification for 'nosuch.module' "
                                "(ModuleNotFoundError: No module named 'nosuch')"})
                .error,
            "Error while finding module specification for 'nosuch.module' (ModuleNotFoundError: No module named "
            "'nosuch')");
  EXPECT_EQ(find_printed_error({"/usr/bin/python3: No module named torch"}).error, "No module named torch");
  EXPECT_EQ(find_printed_error({"/data/python notes: read"}).error, "");
}

std::vector<std::string> followed_by(std::vector<std::string> lines, int count, const std::string& line) {
  for (int i = 0; i < count; ++i) lines.push_back(line + std::to_string(i));
  return lines;
}

TEST(PrintedError, AreNoErrorThatWasOvercome) {
  const std::vector<std::string> traceback{"Traceback (most recent call last):", "  File \"a.py\", line 1, in f",
                                           "ConnectionResetError: [Errno 104] Connection reset by peer"};
  EXPECT_NE(find_printed_error(followed_by(traceback, 3, "closing ")).error, "");
  EXPECT_NE(find_printed_error(followed_by(traceback, 60, "wandb: ")).error, "") << "says nothing";
  const PrintedError overcome = find_printed_error(followed_by(traceback, 60, "step "));
  EXPECT_EQ(overcome.error, "");
  EXPECT_EQ(overcome.lines.back(), "step 59") << "the last lines, then";
  EXPECT_EQ(
      find_printed_error(followed_by({"note: Assertion on NUMA layout failed, using the default"}, 6, "x ")).error, "");
  EXPECT_EQ(find_printed_error(followed_by({"free(): invalid pointer"}, 60, "Register ")).error,
            "free(): invalid pointer")
      << "nothing goes on behind it";
}

TEST(PrintedError, AreAPanicOfRustAndGo) {
  const PrintedError rust = find_printed_error({"thread 'main' panicked at src/main.rs:2:5:", "index out of bounds"});
  EXPECT_EQ(rust.error, "panic: index out of bounds");
  EXPECT_EQ(rust.location, "src/main.rs:2:5");
  EXPECT_EQ(find_printed_error({"panic: runtime error: integer divide by zero", "", "goroutine 1 [running]:"}).error,
            "panic: runtime error: integer divide by zero");
}

TEST(PrintedError, AreWhatTheLoaderAndTheLibraryReport) {
  for (const char* const line : {
           "./train: error while loading shared libraries: libtorch.so: cannot open shared object file",
           "./train: /lib/libc.so.6: version `GLIBC_2.38' not found (required by ./train)",
           "*** stack smashing detected ***: terminated",
           "double free or corruption (out)",
           "terminate called without an active exception",
           "a.cc:3:5: runtime error: signed integer overflow",
       }) {
    EXPECT_EQ(find_printed_error({"before", line}).error, line);
  }
  EXPECT_EQ(find_printed_error({"pure virtual method called", "terminate called without an active exception"}).error,
            "pure virtual method called");
}

TEST(PrintedError, OfBothKindsAreThoseThatCameLast) {
  const Lines python{"Traceback (most recent call last):", "  File \"a.py\", line 1, in f", "ValueError: x"};
  Lines both = python;
  both.insert(both.end(), {"more", "more", "more", "double free or corruption (out)"});
  EXPECT_EQ(find_printed_error(both).error, "double free or corruption (out)");
  both.back() = "terminate called without an active exception";
  EXPECT_EQ(find_printed_error(both).error, "ValueError: x") << "gloo's threads at the end of a failed program";
  Lines inside = python;
  inside.back() = "ImportError: a: error while loading shared libraries: b";
  EXPECT_EQ(find_printed_error(inside).error, inside.back()) << "the exception's own text";
}

TEST(PrintedError, AreTheLastLinesWhenNothingSaysTheCause) {
  Lines lines;
  for (int i = 0; i < 100; ++i) lines.push_back("line " + std::to_string(i));
  lines.insert(lines.end(), {"", ""});
  const PrintedError words = find_printed_error(lines);
  EXPECT_EQ(words.error, "");
  EXPECT_EQ(words.lines.size(), PrintedError::kMostLines);
  EXPECT_EQ(words.lines.back(), "line 99") << "empty lines at the end say nothing";
}

TEST(PrintedError, OfNothingAreNothing) { EXPECT_EQ(find_printed_error({}), PrintedError{}); }

TEST(PrintedError, OfACutTracebackAreItsLines) {
  EXPECT_EQ(find_printed_error({"Traceback (most recent call last):"}).error, "");
  EXPECT_EQ(find_printed_error({"Traceback (most recent call last):", "  File \"a.py\", line 1, in f"}).error, "");
}

}  // namespace
}  // namespace lrun
