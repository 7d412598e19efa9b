#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "inspect/memory_reader.h"

namespace lrun::launcher {

/// The registers of a thread of x86-64 by their numbers in DWARF: 0 to 15 rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 …
/// r15, and the address of the code. Empty: a call has lost it.
struct ThreadRegisters {
  static constexpr std::size_t kStackPointer = 7;
  static constexpr std::size_t kCode = 16;
  static constexpr std::size_t kCount = 17;

  std::array<std::optional<Address>, kCount> values{};
  /// The code is where the thread is, or where a signal has interrupted it: not behind a call.
  bool is_exact = true;

  [[nodiscard]] Address code() const { return values[kCode].value_or(0); }
  [[nodiscard]] Address stack() const { return values[kStackPointer].value_or(0); }
};

/// The tables of an ELF file that say how each of its functions finds its caller. Their bytes may be anything. x86-64,
/// little-endian. All addresses are those of the file.
struct CallFrameTables {
  std::span<const unsigned char> part;  ///< the segment that holds .eh_frame_hdr, which is searched, and .eh_frame
  Address address = 0;                  ///< of the segment
  Address index = 0;                    ///< of .eh_frame_hdr
};

/// The caller of a function.
struct Caller {
  enum class Kind {
    kKnown,     ///< `registers` are those of the caller
    kNone,      ///< the function is the first of its thread
    kNotKnown,  ///< no table knows the function
    kNotRead,   ///< the table says that it is on a part of the stack that `read` does not know
  };
  Kind kind = Kind::kNotKnown;
  ThreadRegisters registers = {};
};

/// Pure but for `read`. After the DWARF standard, version 5, section 6.4, and the x86-64 psABI.
/// \param bias  of the file in memory: address there minus address in the file
/// \param read  8 bytes of the stack; empty: they are not known
Caller caller_of(const ThreadRegisters& callee, const CallFrameTables& tables, Address bias,
                 const std::function<std::optional<Address>(Address)>& read);

}  // namespace lrun::launcher
