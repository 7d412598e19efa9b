// The memory of a process with CPython: what stands there is anything, but its end is reached, and what is found is
// bounded.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "inspect/elf_symbols.h"
#include "inspect/mapping.h"
#include "inspect/memory_reader.h"
#include "inspect/python_frames.h"
#include "inspect/python_layout.h"
#include "inspect/python_lines.h"
#include "support/made_up_python.h"

namespace {

using lrun::launcher::Address;
using lrun::launcher::MemoryPiece;
using lrun::launcher::MemoryReader;

void check(bool holds) {
  if (!holds) std::abort();
}

constexpr Address kLibrary = 0x10'0000;
constexpr Address kData = 0x100'0000;

/// A library with the symbols of an interpreter, and beside it the bytes, again and again, so that wherever a pointer
/// leads there is something.
MemoryReader memory_of(const lrun::test::MadeUpMemory& library, std::string_view data) {
  return MemoryReader([&library, data](std::span<const MemoryPiece> pieces) {
    return std::all_of(pieces.begin(), pieces.end(), [&](const MemoryPiece& piece) {
      if (piece.address < kData && piece.address >= kLibrary) return library.read(piece);
      for (std::size_t i = 0; i < piece.bytes; ++i)
        static_cast<char*>(piece.to)[i] = data[(piece.address - kData + i) % data.size()];
      return true;
    });
  });
}

void look_at_python_of(std::string_view data, const std::map<std::string, Address>& symbols) {
  lrun::test::MadeUpMemory library;
  library.put_library(kLibrary, symbols);
  MemoryReader memory = memory_of(library, data);
  const auto found = lrun::launcher::ElfSymbols::at(memory, kLibrary);
  check(found.has_value());
  const auto python = lrun::launcher::find_python(memory, *found);
  check(python.has_value());
  if (!python->problem.empty()) return;
  const auto threads =
      lrun::launcher::python_threads(memory, *python).value_or(std::vector<lrun::launcher::PythonThread>());
  check(threads.size() <= 4096);
  for (std::size_t i = 0; i < std::min<std::size_t>(threads.size(), 4); ++i) {
    const auto frames = lrun::launcher::python_stack(memory, *python, threads[i]);
    check(!frames || frames->size() <= 64);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)lrun::launcher::mapping_of(text);
  if (text.empty()) return 0;
  for (const int minor : {9, 10, 11, 15}) (void)lrun::launcher::python_line(minor, {data, size}, 1, data[0]);
  const lrun::test::MadeUpMemory nothing;
  MemoryReader memory = memory_of(nothing, text);
  if (const auto symbols = lrun::launcher::ElfSymbols::at(memory, kData)) (void)find_python(memory, *symbols);
  look_at_python_of(text, {{"_PyRuntime", kData}});  // since 3.13 its beginning tells the version
  look_at_python_of(text, {{"_PyRuntime", kData}, {"PyModule_AddType", kData}});
  look_at_python_of(text, {{"_PyRuntime", kData}, {"PyModule_AddType", kData}, {"PyModule_AddObjectRef", kData}});
  look_at_python_of(text, {{"_PyRuntime", kData + 8}, {"Py_Version", kData}});
  return 0;
}
