// In: the memory of a process with CPython, and the layout of its structures. Out: its threads, and their calls. Called
// by look_at_python(). Nothing is stopped: what is read is believed when it is the same twice. Loops end because
// counts are limited; the memory may hold anything.
#include "inspect/python_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "inspect/python_lines.h"
#include "verdict/python_traceback.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostInterpreters = 64;
constexpr std::size_t kMostThreads = 4096;
constexpr std::size_t kMostCalls = 1000;  // of one read, with the heads of the list
constexpr std::size_t kMostShown = 64;
constexpr std::size_t kMostLetters = 4096;
constexpr std::size_t kMostNameBytes = 300;

using Bytes = std::span<const unsigned char>;

struct Call {
  Address address = 0;
  Address previous = 0;
  Address code = 0;
  std::uint64_t instruction = 0;  ///< an address, or before 3.11 a number
  std::uint32_t owner = 0;
  bool runs = true;  ///< before 3.11; false: it has returned, or is a generator's that waits
  std::uint32_t copy = 0;
};

/// Owners of frames, since 3.11; from kInterpreter on a frame is of the interpreter itself and of no function.
constexpr std::uint32_t kGenerator = 1;
constexpr std::uint32_t kInterpreter = 3;

Call call_of(const PythonLayout& layout, Address address, Bytes bytes) {
  const PythonLayout::Frame& frame = layout.frame;
  Call call{address};
  call.previous = value_at<Address>(bytes, frame.previous);
  call.code = value_at<Address>(bytes, frame.code) & ~Address{7};  // since 3.14 a reference has marks in its low bits
  call.instruction = layout.code.bytecode == kNoField ? value_at<std::uint32_t>(bytes, frame.instruction)
                                                      : value_at<std::uint64_t>(bytes, frame.instruction);
  if (frame.owner != kNoField) call.owner = bytes[frame.owner];
  if (frame.state != kNoField) call.runs = bytes[frame.state] == frame.running;
  if (frame.copy != kNoField) call.copy = value_at<std::uint32_t>(bytes, frame.copy);
  return call;
}

/// The same call; of the innermost the instruction may have moved.
bool is_same(const Call& one, const Call& other, bool innermost) {
  return one.previous == other.previous && one.code == other.code && one.owner == other.owner &&
         (innermost || one.instruction == other.instruction);
}

/// Since 3.11 most frames of a thread are in one piece of memory: a copy of it saves a read for each of them.
class StackCopy {
 public:
  StackCopy(MemoryReader& memory, const PythonLayout& layout, const PythonThread& thread) : memory_(memory) {
    constexpr std::uint64_t kMostCopied = 64 * 1024;
    if (layout.thread.stack == kNoField) return;
    const auto ends = memory.value<std::array<Address, 2>>(thread.state + layout.thread.stack);
    if (ends[1] - ends[0] > kMostCopied) return;
    begin_ = ends[0];
    copy_ = memory.bytes(begin_, ends[1] - begin_);
  }
  [[nodiscard]] bool read(Address address, std::span<unsigned char> to) {
    const Address offset = address - begin_;
    if (offset > copy_.size() || copy_.size() - offset < to.size()) return memory_.read(address, to.data(), to.size());
    std::memcpy(to.data(), copy_.data() + offset, to.size());
    return true;
  }

 private:
  MemoryReader& memory_;
  Address begin_ = 0;
  std::vector<unsigned char> copy_;
};

/// Where the calls of a thread begin. In 3.11 and 3.12 a record lies in between, on the thread's stack, and may be left
/// behind there.
struct Head {
  Address first = 0;  ///< the address of the record's or the frame's address
  Address last = 0;   ///< the address of the frame's address
  Address record = 0;
  Address frame = 0;
};

Head head_of(MemoryReader& memory, const PythonLayout& layout, const PythonThread& thread) {
  Head head{.first = thread.state + layout.thread.frame};
  head.record = memory.value<Address>(head.first);
  head.last = layout.thread.inner_frame == kNoField ? head.first : head.record + layout.thread.inner_frame;
  head.frame = memory.value<Address>(head.last);
  return head;
}

/// The calls, innermost first; empty where they cannot be read.
std::optional<std::vector<Call>> first_pass(MemoryReader& memory, const PythonLayout& layout,
                                            const PythonThread& thread, const Head& head) {
  StackCopy stack(memory, layout, thread);
  std::vector<Call> calls;
  std::vector<unsigned char> bytes(layout.frame.bytes);
  Address mark = 0;
  for (Address address = head.frame; address != 0 && calls.size() < kMostCalls; address = calls.back().previous) {
    if (address == mark) return std::nullopt;  // what is left of old frames can be a ring
    if (const std::size_t count = calls.size(); (count & (count - 1)) == 0) mark = address;
    if (!stack.read(address, bytes)) return std::nullopt;
    calls.push_back(call_of(layout, address, bytes));
  }
  return calls;
}

/// All of them once more in one read, between two reads of where they begin.
bool is_unmoved(MemoryReader& memory, const PythonLayout& layout, const Head& head, const std::vector<Call>& calls) {
  std::array<Address, 4> heads{};
  const std::size_t size = layout.frame.bytes;
  std::vector<unsigned char> bytes(calls.size() * size);
  std::vector<MemoryPiece> pieces{{head.first, &heads[0], sizeof(Address)}, {head.last, &heads[1], sizeof(Address)}};
  for (std::size_t i = 0; i < calls.size(); ++i) pieces.push_back({calls[i].address, &bytes[i * size], size});
  pieces.push_back({head.first, &heads[2], sizeof(Address)});
  pieces.push_back({head.last, &heads[3], sizeof(Address)});
  if (!memory.read(pieces) || heads != std::array{head.record, head.frame, head.record, head.frame}) return false;
  // A generator that nobody runs is just being begun or left.
  if (!calls.empty() && calls.size() < kMostCalls && calls.back().owner == kGenerator) return false;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call again = call_of(layout, calls[i].address, Bytes(bytes).subspan(i * size, size));
    if (!again.runs || !is_same(calls[i], again, i == 0)) return false;
  }
  return true;
}

void append_utf8(std::string& text, std::uint32_t letter) {
  constexpr std::uint32_t kLast = 0x10FFFF;
  if (letter > kLast) letter = '?';
  if (letter < 0x80) {
    text += static_cast<char>(letter);
    return;
  }
  const unsigned more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
  text += static_cast<char>((0xFF00U >> (more + 1) & 0xFFU) | letter >> 6 * more);
  for (unsigned rest = more; rest-- > 0;) text += static_cast<char>(0x80U | (letter >> 6 * rest & 0x3FU));
}

/// A str as UTF-8; '??' for anything else.
std::string text_at(MemoryReader& memory, const PythonLayout::Text& layout, Address address) {
  const auto length = memory.value<std::uint64_t>(address + layout.length);
  const auto state = memory.value<std::uint32_t>(address + layout.state) >> layout.kind;
  const std::uint32_t width = state & 7U;
  const bool compact = (state >> 3U & 1U) != 0;
  const bool ascii = (state >> 4U & 1U) != 0;
  if (!compact || length == 0 || length > kMostLetters || (width != 1 && width != 2 && width != 4)) return "??";
  const auto raw = memory.bytes(address + (ascii ? layout.ascii : layout.wide), length * width);
  if (raw.empty()) return "??";
  std::string text;
  for (std::size_t at = 0; at < raw.size(); at += width) {
    append_utf8(text, width == 1   ? raw[at]
                      : width == 2 ? value_at<std::uint16_t>(raw, at)
                                   : value_at<std::uint32_t>(raw, at));
  }
  return text;
}

/// How many bytes of a function's code are before the instruction.
std::int64_t instruction_offset(MemoryReader& memory, const PythonPlace& python, const Call& call) {
  const PythonLayout::Code& layout = python.layout.code;
  if (layout.bytecode == kNoField)
    return std::int64_t{static_cast<std::int32_t>(call.instruction)} * (python.minor == 10 ? 2 : 1);
  Address begin = call.code + layout.bytecode;
  if (layout.copies != kNoField && call.copy != 0) {  // a list: its length, then the copies
    const auto list = memory.value<Address>(call.code + layout.copies);
    begin = memory.value<Address>(list + (Address{call.copy} + 1) * sizeof(Address));
  }
  return static_cast<std::int64_t>(call.instruction - begin);
}

/// Empty: there is no code of a function, so what was read has moved.
std::optional<StackFrame> frame_of(MemoryReader& memory, const PythonPlace& python, const Call& call) {
  const PythonLayout& layout = python.layout;
  if (python.code_type != 0 && memory.value<Address>(call.code + layout.object.type) != python.code_type)
    return std::nullopt;
  constexpr std::size_t kOfOldCode = 136;
  const auto code = memory.bytes(call.code, layout.code.bytecode == kNoField ? kOfOldCode : layout.code.bytecode);
  const auto lines = value_at<Address>(code, layout.code.lines);
  const auto table = memory.bytes(lines + layout.object.bytes, memory.value<std::uint64_t>(lines + layout.object.size));
  const std::string file = text_at(memory, layout.text, value_at<Address>(code, layout.code.file));
  const std::string name = text_at(memory, layout.text, value_at<Address>(code, layout.code.name));
  const auto first_line = value_at<std::int32_t>(code, layout.code.first_line);
  const std::optional<int> line =
      python_line(python.minor, table, first_line, instruction_offset(memory, python, call));
  const std::string base = file.substr(file.rfind('/') + 1).substr(0, kMostNameBytes);
  return StackFrame{name.substr(0, kMostNameBytes), line ? fmt::format("{}:{}", base, *line) : base,
                    is_foreign_source(file)};
}

/// The addresses of the threads, the newest first; empty where a list does not end as it should.
std::optional<std::vector<Address>> walk_threads(MemoryReader& memory, const PythonPlace& python) {
  const PythonLayout& layout = python.layout;
  std::vector<Address> threads;
  auto interpreter = memory.value<Address>(python.runtime + layout.interpreter.list);
  for (std::size_t i = 0; i < kMostInterpreters && interpreter != 0; ++i) {
    auto state = memory.value<Address>(interpreter + layout.interpreter.threads);
    for (; state != 0; state = memory.value<Address>(state + layout.thread.next)) {
      // The list is not locked: a thread that has just ended is no member of it.
      const bool is_member = memory.value<Address>(state + layout.thread.interpreter) == interpreter;
      if (!is_member || threads.size() == kMostThreads) return std::nullopt;
      threads.push_back(state);
    }
    interpreter = memory.value<Address>(interpreter + layout.interpreter.next);
  }
  return threads;
}

}  // namespace

std::optional<std::vector<PythonThread>> python_threads(MemoryReader& memory, const PythonPlace& python) {
  const PythonLayout& layout = python.layout;
  constexpr std::uint32_t kActive = 16;
  const Address gil_owner = layout.interpreter.gil_owner == kNoField
                                ? 0
                                : memory.value<Address>(python.runtime + layout.interpreter.gil_owner);
  const auto states = walk_threads(memory, python);
  if (!states || walk_threads(memory, python) != states) return std::nullopt;
  std::vector<PythonThread> threads;
  for (auto state = states->rbegin(); state != states->rend();
       ++state) {  // new ones are put at the front of both lists
    const bool active =
        layout.thread.status != kNoField && (memory.value<std::uint32_t>(*state + layout.thread.status) & kActive) != 0;
    threads.push_back({*state, active || (gil_owner != 0 && gil_owner == *state)});
  }
  return threads;
}

std::optional<std::vector<StackFrame>> python_stack(MemoryReader& memory, const PythonPlace& python,
                                                    const PythonThread& thread) {
  const Head head = head_of(memory, python.layout, thread);
  const auto calls = first_pass(memory, python.layout, thread, head);
  if (!calls || !is_unmoved(memory, python.layout, head, *calls)) return std::nullopt;
  std::vector<StackFrame> frames;
  for (const Call& call : *calls) {
    if (call.owner >= kInterpreter) continue;
    if (frames.size() == kMostShown) break;
    std::optional<StackFrame> frame = frame_of(memory, python, call);
    if (!frame) return std::nullopt;
    frames.push_back(*std::move(frame));
  }
  return frames;
}

}  // namespace lrun::launcher
