// In: the dynamic symbols of an interpreter, and its memory. Out: its version, and where the fields of its structures
// are. Called by look_at_python(). Pure but for the reader: what the process tells of itself is checked.
#include "inspect/python_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>

namespace lrun::launcher {
namespace {

constexpr int kFirstMinor = 9;
constexpr int kFirstThatTells = 13;  // the runtime begins with a table of offsets
constexpr int kLastMinor = 15;

/// The runtime's offset of the thread that holds the GIL; it stands behind mutexes of the C library.
constexpr std::uint32_t on_x86_64(std::uint32_t offset) {
#if defined(__x86_64__)
  return offset;
#else
  return offset == 0 ? 0 : kNoField;
#endif
}

/// By `offsetof` in the headers of 3.9.18, 3.10.13, 3.11.7 and 3.12.1; they stay within a minor version.
PythonLayout known_layout(int minor) {
  PythonLayout layout;
  switch (minor) {
    case 9:
      layout.interpreter = {.list = 32, .next = 0, .threads = 8, .gil_owner = on_x86_64(568)};
      layout.thread = {.next = 8, .interpreter = 16, .frame = 24};
      layout.frame = {.bytes = 120, .previous = 24, .code = 32, .instruction = 104, .state = 116, .running = 1};
      layout.code = {.file = 104, .name = 112, .first_line = 40, .lines = 120};
      break;
    case 10:
      layout.interpreter = {.list = 32, .next = 0, .threads = 8, .gil_owner = on_x86_64(568)};
      layout.thread = {.next = 8, .interpreter = 16, .frame = 24};
      layout.frame = {.bytes = 112, .previous = 24, .code = 32, .instruction = 96, .state = 108, .running = 0};
      layout.code = {.file = 104, .name = 112, .first_line = 40, .lines = 120};
      break;
    case 11:
      layout.interpreter = {.list = 40, .next = 0, .threads = 16, .gil_owner = on_x86_64(576)};
      layout.thread = {.next = 8, .interpreter = 16, .frame = 56, .inner_frame = 8, .stack = 296};
      layout.frame = {.bytes = 72, .previous = 48, .code = 32, .instruction = 56, .owner = 69};
      layout.code = {.file = 112, .name = 120, .first_line = 72, .lines = 136, .bytecode = 184};
      break;
    default:
      layout.interpreter = {.list = 40, .next = 0, .threads = 72};
      layout.thread = {.next = 8, .interpreter = 16, .frame = 56, .inner_frame = 0, .status = 24, .stack = 232};
      layout.frame = {.bytes = 72, .previous = 8, .code = 0, .instruction = 56, .owner = 70};
      layout.code = {.file = 112, .name = 120, .first_line = 68, .lines = 136, .bytecode = 192};
      layout.text.ascii = 40;
      layout.text.wide = 56;
      break;
  }
  return layout;
}

/// The first words of the table at which the offsets of one structure begin, in 3.13, 3.14 and 3.15.
struct TableBegins {
  std::size_t thread;
  std::size_t thread_stack;
  std::size_t frame;
  std::size_t code;
  std::size_t object;
  std::size_t bytes;
  std::size_t text;
};
constexpr std::array<TableBegins, 3> kTableBegins{
    {{19, 26, 28, 34, 45, 65, 68}, {22, 29, 31, 39, 51, 75, 78}, {22, 32, 39, 47, 59, 87, 90}}};

constexpr std::size_t kTableWords = 96;
using Table = std::array<std::uint64_t, kTableWords>;

PythonLayout told_layout(const Table& table, int minor) {
  const TableBegins begin = kTableBegins.at(static_cast<std::size_t>(minor - kFirstThatTells));
  const bool without_gil = table[2] == 1;
  const auto word = [&](std::size_t index) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(table.at(index), kNoField));
  };
  PythonLayout layout;
  layout.interpreter = {.list = word(5), .next = word(8), .threads = word(9)};
  layout.thread = {.next = word(begin.thread + 2),
                   .interpreter = word(begin.thread + 3),
                   .frame = word(begin.thread + 4),
                   .status = word(begin.thread_stack + 1),
                   .stack = word(begin.thread_stack)};
  layout.frame = {.bytes = word(begin.frame),
                  .previous = word(begin.frame + 1),
                  .code = word(begin.frame + 2),
                  .instruction = word(begin.frame + 3),
                  .owner = word(begin.frame + 5)};
  layout.code = {.file = word(begin.code + 1),
                 .name = word(begin.code + 2),
                 .first_line = word(begin.code + 5),
                 .lines = word(begin.code + 4),
                 .bytecode = word(begin.code + 9)};
  layout.object = {.type = word(begin.object), .size = word(begin.bytes), .bytes = word(begin.bytes + 1)};
  layout.text = {.length = word(begin.text + 1),
                 .state = word(begin.text),
                 .ascii = word(begin.text + 2),
                 .wide = word(begin.text + 2) + 16};  // the length in UTF-8, and that text, come between
  if (without_gil && minor > kFirstThatTells) {
    layout.frame.copy = word(begin.frame + 7);
    layout.code.copies = word(begin.code + 10);
    layout.text.kind = 8;
  }
  if (without_gil) layout.thread.status = kNoField;  // the bit then stands for any thread that runs Python
  return layout;
}

/// Frames and code are read at once: they must be small, and hold the fields that are taken from them.
bool is_sound(const PythonLayout& layout) {
  constexpr std::uint32_t kLargestFrame = 256;
  constexpr std::uint32_t kLargestCode = 1024;
  const PythonLayout::Frame& frame = layout.frame;
  const PythonLayout::Code& code = layout.code;
  const auto within = [](std::uint32_t bytes, std::initializer_list<std::uint32_t> fields) {
    return std::all_of(fields.begin(), fields.end(),
                       [bytes](std::uint32_t field) { return field <= bytes && bytes - field >= 8; });
  };
  return frame.bytes <= kLargestFrame && within(frame.bytes, {frame.previous, frame.code, frame.instruction}) &&
         frame.owner < frame.bytes && code.bytecode <= kLargestCode &&
         within(code.bytecode, {code.file, code.name, code.lines, code.first_line});
}

/// PY_VERSION_HEX is 0x030d00f0 in 3.13.0; without the f it is no release, and structures may still change.
std::string problem_of_version(std::uint64_t version) {
  const auto minor = static_cast<int>(version >> 16U & 0xffU);
  const std::string name = fmt::format("Python {}.{}", version >> 24U & 0xffU, minor);
  if (version >> 24U != 3 || minor > kLastMinor) return name + " is not known to this lrun";
  return (version >> 4U & 0xfU) == 0xfU ? std::string() : name + " is not a final release";
}

/// Python 3.9 and 3.10 do not tell their version; each exports what the one before does not. 0: it is older.
int minor_by_symbols(MemoryReader& memory, const ElfSymbols& symbols) {
  if (symbols.find(memory, "PyModule_AddObjectRef") != 0) return 10;
  return symbols.find(memory, "PyModule_AddType") != 0 ? kFirstMinor : 0;
}

void read_version(MemoryReader& memory, const ElfSymbols& symbols, PythonPlace& python) {
  Table table{};
  const bool tells = memory.read(python.runtime, table.data(), sizeof table) &&
                     std::memcmp(table.data(), "xdebugpy", sizeof table[0]) == 0;
  const Address version = symbols.find(memory, "Py_Version");  // since 3.11
  if (tells || version != 0) {
    const std::uint64_t number = tells ? table[1] : memory.value<std::uint64_t>(version);
    python.problem = problem_of_version(number);
    python.minor = static_cast<int>(number >> 16U & 0xffU);
  } else {
    python.minor = minor_by_symbols(memory, symbols);
  }
  if (!python.problem.empty()) return;
  if (python.minor < kFirstMinor) {
    python.problem = "Python is older than 3.9";
  } else if (tells == (python.minor < kFirstThatTells)) {
    python.problem = "Python tells two versions of itself";
  } else {
    python.layout = tells ? told_layout(table, python.minor) : known_layout(python.minor);
    if (tells && !is_sound(python.layout)) python.problem = "Python tells impossible offsets of itself";
  }
}

}  // namespace

std::optional<PythonPlace> find_python(MemoryReader& memory, const ElfSymbols& symbols) {
  PythonPlace python;
  python.runtime = symbols.find(memory, "_PyRuntime");
  if (python.runtime == 0) return std::nullopt;
  python.code_type = symbols.find(memory, "PyCode_Type");
  if (symbols.find(memory, "_Py_NegativeRefcount") != 0) {
    python.problem = "Python is a debug build";
  } else {
    read_version(memory, symbols, python);
  }
  return python;
}

}  // namespace lrun::launcher
