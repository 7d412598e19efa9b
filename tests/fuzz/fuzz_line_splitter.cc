#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "logs/line_splitter.h"
#include "logs/tail_buffer.h"
#include "logs/terminal_text.h"

namespace {

/// Aborts, which libFuzzer reports with the input.
void demand(bool holds) {
  if (!holds) std::abort();
}

/// Whether `fitted` is a beginning of `whole`, a mark of the cut where there is room, and the end of all colours.
bool is_cut(std::string_view fitted, std::string_view whole) {
  for (const std::string_view end : {"…\x1b[0m", "\x1b[0m"}) {
    if (fitted.ends_with(end) && whole.starts_with(fitted.substr(0, fitted.size() - end.size()))) return true;
  }
  return false;
}

/// Pieces must be the input again, and lines that fit must come whole: between two chunks no line is half given.
struct Collector {
  void operator()(std::string_view piece) {
    demand(!piece.empty());
    demand(piece.find('\n') == piece.npos || piece.find('\n') == piece.size() - 1);
    bytes += piece;
    line_bytes = piece.back() == '\n' ? 0 : line_bytes + piece.size();
  }
  std::string bytes;
  std::size_t line_bytes = 0;  ///< given of a line that is not ended yet
};

}  // namespace

/// Input: chunks, each begun by a byte: its length (six bits), its stream, and whether it is repeated 1000 times.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  lrun::launcher::LineSplitter splitter;
  lrun::launcher::TailBuffer tail(512);
  Collector collected;
  std::string whole;
  while (!input.empty()) {
    const auto head = static_cast<unsigned char>(input.front());
    std::string chunk(input.substr(1, head & 63U));
    input.remove_prefix(1 + chunk.size());
    if ((head & 128U) != 0 && whole.size() < 1'000'000) {
      std::string repeated;
      for (int i = 0; i < 1000; ++i) repeated += chunk;
      chunk = repeated;
    }
    whole += chunk;
    splitter.split(chunk, collected);
    demand(splitter.held_bytes() <= lrun::launcher::LineSplitter::kLongestHeld);
    demand(collected.line_bytes == 0 || collected.line_bytes > lrun::launcher::LineSplitter::kLongestHeld ||
           splitter.held_bytes() > 0 || chunk.empty() || collected.bytes.size() == whole.size());
    tail.append((head & 64U) != 0 ? lrun::LogStream::kErr : lrun::LogStream::kOut, chunk);
    demand(tail.memory_bytes() <= 512);
    const std::string fitted = lrun::launcher::fitted(chunk, head & 31U);
    demand(fitted == chunk || is_cut(fitted, chunk));
    for (const lrun::launcher::TailLine& line : tail.lines()) {
      for (const char byte : lrun::launcher::terminal_safe(line.text)) demand(byte == '\t' || (byte & 0xE0) != 0);
    }
  }
  splitter.finish(collected);
  demand(collected.bytes == whole);
  demand(splitter.held_bytes() == 0);
  return 0;
}
