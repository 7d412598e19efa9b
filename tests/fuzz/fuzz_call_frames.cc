// The bytes of an ELF file that a process has loaded: whatever they say about its functions and their callers, the end
// is reached, and nothing outside of the bytes is read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "inspect/call_frames.h"
#include "inspect/elf_image.h"

namespace {

using lrun::launcher::Address;
using lrun::launcher::CallFrameTables;
using lrun::launcher::ElfImage;
using lrun::launcher::ThreadRegisters;

void follow_calls(const CallFrameTables& tables, Address code) {
  ThreadRegisters registers;
  registers.values.fill(0x1000);
  registers.values[ThreadRegisters::kCode] = code;
  for (int calls = 0; calls < 64; ++calls) {
    const lrun::launcher::Caller caller = lrun::launcher::caller_of(
        registers, tables, 0, [](Address address) { return std::optional(address % 0x2000); });
    if (caller.kind != lrun::launcher::Caller::Kind::kKnown) return;
    registers = caller.registers;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // As a file, and as the tables alone, which are reached more often so.
  if (const auto image = ElfImage::of_bytes({data, data + size})) {
    if (image->functions_at({0, 0x1000, 0x2000}).size() != 3) std::abort();
    (void)image->code_address_of(0x100);
    const CallFrameTables tables = image->call_frames();
    for (Address code = 0; code < 0x2000; code += 0x80) follow_calls(tables, code);
  }
  const CallFrameTables bare{{data, size}, 0x100, 0x100};
  for (Address code = 0; code < 0x1000; code += 0x80) follow_calls(bare, code);
  return 0;
}
