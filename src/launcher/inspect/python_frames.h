#pragma once

#include <optional>
#include <vector>

#include "inspect/memory_reader.h"
#include "inspect/python_layout.h"
#include "inspect/stack_sample.h"

namespace lrun::launcher {

// The calls of Python in a process that goes on while it is read. Pure but for the reader.

/// A thread that Python knows.
struct PythonThread {
  Address state = 0;
  bool holds_gil = false;  ///< false also in a build without a GIL

  bool operator==(const PythonThread&) const = default;
};

/// The threads of all interpreters of a process, the oldest first, which is the main one. Empty where threads came or
/// went meanwhile, or are more than 4096: then look again.
std::optional<std::vector<PythonThread>> python_threads(MemoryReader& memory, const PythonPlace& python);

/// The calls of a thread, innermost first: the 64 innermost. They are read twice, and empty when something moved in
/// between: then look again. A thread that waits is right at once; one in a loop of short calls needs some looks.
std::optional<std::vector<StackFrame>> python_stack(MemoryReader& memory, const PythonPlace& python,
                                                    const PythonThread& thread);

}  // namespace lrun::launcher
