#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "inspect/elf_symbols.h"
#include "inspect/memory_reader.h"

namespace lrun::launcher {

/// The place of a field that a version does not have.
inline constexpr std::uint32_t kNoField = ~0U;

/// Where the fields of CPython's structures are, in bytes, in one version of it.
struct PythonLayout {
  struct Interpreter {
    std::uint32_t list = kNoField;  ///< in the runtime
    std::uint32_t next = 0;
    std::uint32_t threads = 0;
    std::uint32_t gil_owner = kNoField;  ///< in the runtime: the thread that holds the GIL
  };
  struct Thread {
    std::uint32_t next = 0;
    std::uint32_t interpreter = 0;
    std::uint32_t frame = 0;
    std::uint32_t inner_frame = kNoField;  ///< in what `frame` points to, in 3.11 and 3.12
    std::uint32_t status = kNoField;       ///< with the bit of the thread that holds the GIL
    std::uint32_t stack = kNoField;        ///< begin and end of the memory of most frames
  };
  struct Frame {
    std::uint32_t bytes = 0;
    std::uint32_t previous = 0;
    std::uint32_t code = 0;
    std::uint32_t instruction = 0;
    std::uint32_t owner = kNoField;
    std::uint32_t state = kNoField;  ///< in 3.9 and 3.10
    std::uint32_t running = 0;       ///< the value of `state` in a frame that runs
    std::uint32_t copy = kNoField;   ///< of the bytecode that runs, in builds without a GIL
  };
  struct Code {
    std::uint32_t file = 0;
    std::uint32_t name = 0;
    std::uint32_t first_line = 0;
    std::uint32_t lines = 0;
    std::uint32_t bytecode = kNoField;
    std::uint32_t copies = kNoField;  ///< of the bytecode
  };
  struct Object {
    std::uint32_t type = 8;
    std::uint32_t size = 16;
    std::uint32_t bytes = 32;  ///< of a bytes object
  };
  struct Text {
    std::uint32_t length = 16;
    std::uint32_t state = 32;
    std::uint32_t ascii = 48;
    std::uint32_t wide = 72;
    std::uint32_t kind = 2;  ///< the bit at which the width begins
  };

  Interpreter interpreter;
  Thread thread;
  Frame frame;
  Code code;
  Object object;
  Text text;
};

/// A CPython in another process.
struct PythonPlace {
  Address runtime = 0;    ///< _PyRuntime
  Address code_type = 0;  ///< PyCode_Type; 0: not known
  int minor = 0;          ///< 11 in 3.11.2
  PythonLayout layout;
  std::string problem = {};  ///< why it cannot be read: 'Python 3.16 is not known to this lrun'
};

/// The interpreter in a loaded file, of CPython 3.9 to 3.15. Empty: there is none. With a problem: it is of a version
/// whose structures are not known, or a debug build.
std::optional<PythonPlace> find_python(MemoryReader& memory, const ElfSymbols& symbols);

}  // namespace lrun::launcher
