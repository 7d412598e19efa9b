#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "process/progress.h"

namespace lrun::launcher {

/// One call of a stack.
struct StackFrame {
  std::string function;  ///< '??' when nobody knows
  std::string place;     ///< 'train.py:12', 'libc.so.6'; may be empty
  bool foreign = false;  ///< of Python itself or an installed package

  bool operator==(const StackFrame&) const = default;
};

/// A thread of Python, and its calls.
struct PythonStack {
  bool holds_gil = false;
  std::vector<StackFrame> frames{};  ///< innermost first; empty: it runs no Python

  bool operator==(const PythonStack&) const = default;
};

/// Where one rank was when it was looked at: its main thread, but for `other_threads`.
struct StackSample {
  int rank = 0;
  pid_t pid = 0;        ///< the process that was looked at: the rank's, or what its shell waits for
  std::string command;  ///< the process's name
  char state = 0;       ///< 'R', 'S', 'D', 'T', 'Z' as in /proc; 0: there is no such process
  int threads = 0;
  std::int64_t activity = 0;          ///< of its main thread: activity_of()
  std::string system_call;            ///< 'read'; empty: none, or not known
  std::string waits_for;              ///< '/data/x.bin', 'pipe:[42]': the descriptor of that call; may be empty
  std::string wait_channel;           ///< of the kernel: 'futex_wait_queue'; may be empty
  std::vector<StackFrame> python;     ///< innermost first; empty: no Python, or not known
  std::vector<StackFrame> native;     ///< innermost first
  std::vector<std::string> problems;  ///< why something is missing, for people
  std::vector<int> alike = {};        ///< in a short answer: other ranks at this place, which are left out
  std::string host = {};              ///< of a job of several launchers; empty: this one
  ReportedCall call = {};             ///< of liblrun, in which it waits; none in a sample from another process
  std::vector<PythonStack> other_threads = {};  ///< of Python

  [[nodiscard]] bool has_ended() const { return state == 0 || state == 'Z' || state == 'X'; }
  bool operator==(const StackSample&) const = default;
};

}  // namespace lrun::launcher
