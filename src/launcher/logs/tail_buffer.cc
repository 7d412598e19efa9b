// In: the bytes of a worker's streams. Out: its last lines, for the verdict and `lrun status`. LogRouter has one for
// each worker.
#include "logs/tail_buffer.h"

#include <algorithm>
#include <array>

namespace lrun::launcher {

namespace {

constexpr std::size_t kMostLineBytes = 2048;

LogStream other(LogStream stream) { return stream == LogStream::kOut ? LogStream::kErr : LogStream::kOut; }

/// True of 'ValueError: text', also behind torch's '[rank0]: '. The text of an exception may have a '\r', which redraws
/// nothing: the name is what the verdict needs.
bool names_exception(std::string_view line) {
  if (line.starts_with("[rank")) line.remove_prefix(std::min(line.find("]: ") + 3, line.size()));  // npos + 3 is 2
  const std::string_view name = line.substr(0, line.find(": "));
  const bool is_word = name.size() < line.size() && name.find_first_of(" \t\r") == std::string_view::npos;
  return is_word &&
         ((name.ends_with("Error") && name != "Error") || (name.ends_with("Exception") && name != "Exception"));
}

/// The line as a terminal shows it after it redrew itself: the text behind the last '\r' that is not at its end.
std::string last_drawing(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  if (!names_exception(line)) return std::string(line.substr(line.rfind('\r') + 1));  // npos + 1 is 0
  std::string whole(line);
  std::replace(whole.begin(), whole.end(), '\r', ' ');
  return whole;
}

}  // namespace

TailBuffer::TailBuffer(std::size_t limit_bytes)
    : text_limit_(std::max<std::size_t>(limit_bytes, 256) * 7 / 8),
      run_limit_(std::max<std::size_t>(limit_bytes, 256) / 8 / sizeof(Run)),
      line_limit_(std::min(kMostLineBytes, text_limit_ / 2)) {}

void TailBuffer::append(LogStream stream, std::string_view bytes) {
  // A chunk that could fill half of the memory alone: only its end can matter, and nothing may be joined to that end.
  const std::size_t most = text_limit_ / 2;
  if (bytes.size() > most && !has_long_line(stream, bytes)) {
    drop_oldest(stream, half(stream).bytes.size());
    half(stream).cut = bytes[bytes.size() - most - 1] != '\n';
    half(stream).open = 0;
    bytes.remove_prefix(bytes.size() - most);
  }
  if (bytes.find('\r') == std::string_view::npos && !half(stream).view().ends_with('\r')) {
    store(stream, bytes);
    return;
  }
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
    store_redrawn(stream, bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
}

/// `line` is the rest of a line with its newline, or a part of it.
void TailBuffer::store_redrawn(LogStream stream, std::string_view line) {
  const std::string_view kept = half(stream).view();
  const std::string_view open_line = kept.substr(kept.rfind('\n') + 1);  // npos + 1 is 0
  if (names_exception(open_line.empty() ? line : open_line)) return store(stream, line);
  const bool redraws_what_is_there =
      half(stream).view().ends_with('\r') && line.front() != '\r' && line.front() != '\n';
  const std::size_t last_shown = line.find_last_not_of("\r\n");
  const std::size_t last_return = last_shown == std::string_view::npos ? last_shown : line.rfind('\r', last_shown);
  if (last_return != std::string_view::npos) line.remove_prefix(last_return + 1);
  if (redraws_what_is_there || last_return != std::string_view::npos) drop_open_line(stream);
  store(stream, line);
}

/// Looks at one place in each step of a line's longest length, not at every byte.
bool TailBuffer::has_long_line(LogStream stream, std::string_view bytes) const {
  std::size_t room = line_limit_ - std::min(line_limit_, half(stream).open);
  while (bytes.size() > room) {
    const std::size_t newline = bytes.rfind('\n', room);
    if (newline == std::string_view::npos) return true;
    bytes.remove_prefix(newline + 1);
    room = line_limit_;
  }
  return false;
}

void TailBuffer::store(LogStream stream, std::string_view bytes) {
  std::size_t& open = half(stream).open;
  if (!has_long_line(stream, bytes)) {
    keep(stream, bytes);
    const std::size_t newline = bytes.rfind('\n');
    open = newline == std::string_view::npos ? open + bytes.size() : bytes.size() - newline - 1;
    return;
  }
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.find('\n'), bytes.size());
    keep(stream, bytes.substr(0, std::min(length, line_limit_ - std::min(line_limit_, open))));
    open += length;
    bytes.remove_prefix(length);
    if (bytes.empty()) return;
    keep(stream, bytes.substr(0, 1));
    open = 0;
    bytes.remove_prefix(1);
  }
}

void TailBuffer::keep(LogStream stream, std::string_view bytes) {
  if (bytes.empty()) return;
  make_room(stream, bytes.size());
  std::vector<char>& kept = half(stream).bytes;
  kept.insert(kept.end(), bytes.begin(), bytes.end());
  const auto count = static_cast<std::uint32_t>(bytes.size());
  if (!runs_.empty() && runs_.back().stream == stream) {
    runs_.back().bytes += count;
  } else {
    runs_.push_back({stream, count});
  }
}

void TailBuffer::make_room(LogStream stream, std::size_t wanted) {
  while (text_bytes() + wanted > text_limit_ || runs_.size() >= run_limit_) {
    const bool own_is_larger = half(stream).bytes.size() + wanted >= half(other(stream)).bytes.size();
    const LogStream victim = own_is_larger && !half(stream).bytes.empty() ? stream : other(stream);
    // A quarter at once: dropping moves what stays, so it must not happen with every line.
    drop_oldest(victim, std::max(wanted, text_limit_ / 4));
  }
  std::vector<char>& own = half(stream).bytes;
  std::vector<char>& theirs = half(other(stream)).bytes;
  const std::size_t needed = own.size() + wanted;
  if (needed <= own.capacity()) return;
  if (needed + theirs.capacity() > text_limit_) theirs.shrink_to_fit();
  own.reserve(std::max(needed, std::min(2 * own.capacity(), text_limit_ - theirs.capacity())));
}

void TailBuffer::drop_oldest(LogStream stream, std::size_t count) {
  Half& from = half(stream);
  count = std::min(count, from.bytes.size());
  if (count == 0) return;
  from.cut = from.bytes[count - 1] != '\n';
  from.bytes.erase(from.bytes.begin(), from.bytes.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<Run> left;
  left.reserve(runs_.capacity());  // its own growth: doubling any other size could pass the limit
  for (Run run : runs_) {
    if (run.stream == stream) {
      const std::size_t gone = std::min<std::size_t>(count, run.bytes);
      run.bytes -= static_cast<std::uint32_t>(gone);
      count -= gone;
    }
    if (run.bytes == 0) continue;
    if (!left.empty() && left.back().stream == run.stream) {
      left.back().bytes += run.bytes;
    } else {
      left.push_back(run);
    }
  }
  runs_ = std::move(left);
}

void TailBuffer::drop_open_line(LogStream stream) {
  Half& from = half(stream);
  const std::size_t start = from.view().rfind('\n') + 1;  // npos + 1 is 0
  std::size_t count = from.bytes.size() - start;
  if (start == 0) from.cut = false;
  from.bytes.resize(start);
  from.open = 0;
  for (auto run = runs_.rbegin(); run != runs_.rend() && count > 0; ++run) {
    if (run->stream != stream) continue;
    const std::size_t gone = std::min<std::size_t>(count, run->bytes);
    run->bytes -= static_cast<std::uint32_t>(gone);
    count -= gone;
  }
  std::erase_if(runs_, [](const Run& run) { return run.bytes == 0; });
}

std::vector<TailLine> TailBuffer::lines() const {
  struct Place {
    std::size_t line = 0;  ///< where the current line begins
    std::size_t run = 0;   ///< where the current run begins
  };
  std::array<Place, 2> places;
  std::vector<TailLine> lines;
  for (const Run& run : runs_) {
    const Half& from = half(run.stream);
    const std::string_view bytes = from.view();
    Place& place = places[run.stream == LogStream::kOut ? 0 : 1];
    const std::size_t run_end = place.run + run.bytes;
    while (place.line < run_end) {
      const std::size_t newline = bytes.find('\n', std::max(place.line, place.run));
      const bool open = newline == std::string_view::npos;
      if (open ? run_end < bytes.size() : newline >= run_end) break;  // a later run has the line's last byte
      const std::size_t end = open ? bytes.size() : newline;
      const bool beheaded = from.cut && place.line == 0 && !open && newline + 1 < bytes.size();
      if (!beheaded) {
        lines.push_back({run.stream, last_drawing(bytes.substr(place.line, end - place.line))});
      }
      place.line = end + 1;
    }
    place.run = run_end;
  }
  return lines;
}

std::size_t TailBuffer::memory_bytes() const {
  return out_.bytes.capacity() + err_.bytes.capacity() + runs_.capacity() * sizeof(Run);
}

}  // namespace lrun::launcher
