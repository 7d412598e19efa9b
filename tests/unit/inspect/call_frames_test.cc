#include "inspect/call_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <ucontext.h>
#include <unwind.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace lrun::launcher {
namespace {

/// A file of this process in memory.
struct OwnFile {
  CallFrameTables tables;
  Address bias = 0;
  Address begin = 0;
  Address end = 0;
};

std::vector<OwnFile> own_files() {
  std::vector<OwnFile> files;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* all) {
        OwnFile file{.bias = info->dlpi_addr, .begin = ~Address{0}};
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type == PT_GNU_EH_FRAME) file.tables.index = part.p_vaddr;
        }
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD) continue;
          file.begin = std::min<Address>(file.begin, info->dlpi_addr + part.p_vaddr);
          file.end = std::max<Address>(file.end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
          const bool has_index = part.p_vaddr <= file.tables.index && file.tables.index < part.p_vaddr + part.p_filesz;
          if (!has_index) continue;
          const auto* const bytes = reinterpret_cast<const unsigned char*>(info->dlpi_addr + part.p_vaddr);
          file.tables.part = {bytes, part.p_filesz};
          file.tables.address = part.p_vaddr;
        }
        static_cast<std::vector<OwnFile>*>(all)->push_back(file);
        return 0;
      },
      &files);
  return files;
}

ThreadRegisters registers_of(const ucontext_t& context) {
  constexpr int kOrder[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                            REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  ThreadRegisters registers;
  for (std::size_t i = 0; i < ThreadRegisters::kCount; ++i) {
    registers.values[i] = static_cast<Address>(context.uc_mcontext.gregs[kOrder[i]]);
  }
  return registers;
}

/// The places of the code of all calls, innermost first.
std::vector<Address> calls_from(ThreadRegisters registers) {
  const std::vector<OwnFile> files = own_files();
  std::vector<Address> places;
  constexpr std::size_t kMost = 1000;
  while (places.size() < kMost) {
    places.push_back(registers.code());
    const Address code = registers.code() - (registers.is_exact ? 0 : 1);
    const auto file =
        std::find_if(files.begin(), files.end(), [&](const OwnFile& it) { return it.begin <= code && code < it.end; });
    if (file == files.end()) break;
    const Caller caller = caller_of(registers, file->tables, file->bias, [](Address address) {
      return std::optional(*reinterpret_cast<const Address*>(address));  // NOLINT(performance-no-int-to-ptr)
    });
    if (caller.kind != Caller::Kind::kKnown) break;
    registers = caller.registers;
  }
  return places;
}

/// The same, by the unwinder of exceptions.
std::vector<Address> calls_by_the_compiler() {
  std::vector<Address> places;
  ::_Unwind_Backtrace(
      [](_Unwind_Context* context, void* all) {
        static_cast<std::vector<Address>*>(all)->push_back(::_Unwind_GetIP(context));
        return _URC_NO_REASON;
      },
      &places);
  return places;
}

std::vector<Address> compilers_calls;
std::vector<Address> own_calls;

/// Both, from here on.
__attribute__((noinline)) void compare() {
  ucontext_t context;
  ::getcontext(&context);
  own_calls = calls_from(registers_of(context));
  compilers_calls = calls_by_the_compiler();
  if (own_calls.size() < 2) return;
  own_calls.erase(own_calls.begin());  // a place in this function, as the first ones of the others are
  const auto first = std::find(compilers_calls.begin(), compilers_calls.end(), own_calls.front());
  compilers_calls.erase(compilers_calls.begin(), first);
  while (!compilers_calls.empty() && compilers_calls.back() == 0) compilers_calls.pop_back();
}

__attribute__((noinline, noclone, optimize("O1"))) int nested(int depth) {
  char room[256];
  std::memset(room, depth, sizeof room);
  const int below = depth == 0 ? (compare(), 0) : nested(depth - 1);
  return below + room[static_cast<std::size_t>(below + depth) % sizeof room];
}

void show_difference() { EXPECT_EQ(own_calls, compilers_calls); }

TEST(CallFrames, AreThoseThatExceptionsGoThrough) {
  (void)nested(10);
  EXPECT_GT(own_calls.size(), 15U);
  show_difference();
}

TEST(CallFrames, GoThroughCodeOfOtherLibraries) {
  int numbers[] = {2, 1};
  ::qsort(numbers, 2, sizeof(int), [](const void*, const void*) { return (compare(), 1); });
  show_difference();
}

TEST(CallFrames, GoThroughASignal) {
  const auto before = ::signal(SIGUSR1, [](int) { compare(); });
  ::raise(SIGUSR1);
  ::signal(SIGUSR1, before);
  show_difference();
}

}  // namespace
}  // namespace lrun::launcher
