// In: the last lines of a worker. Out: the last error among them that compiled code reports, with its place. Called by
// find_printed_error().
#include "verdict/native_error.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/split.h"
#include "verdict/has_any.h"

namespace lrun::inline core {
namespace {

constexpr std::string_view kThrown = "terminate called after throwing an instance of '";
constexpr std::string_view kWhat = "  what():  ";
constexpr std::string_view kGoPanic = "panic: ";
constexpr std::string_view kSummary = "SUMMARY: ";
constexpr std::size_t kMostAfterOneLine = 3;  // after an error of one line that need not end the program

/// The two lines of a C++ program that terminates, as one: 'lrun::PeerLost: rank 1 ended'.
FoundError read_exception(const std::vector<std::string>& lines, std::size_t named) {
  const std::string_view line(lines[named]);
  const auto begin = line.find(kThrown) + kThrown.size();
  FoundError found{.line = named, .printed = {}, .most_after = FoundError::kNoLimit};  // the program aborts
  const std::string type(line.substr(begin, line.rfind('\'') - begin));
  found.printed.lines.emplace_back(line);
  if (named + 1 >= lines.size() || !lines[named + 1].starts_with(kWhat)) {
    found.printed.error = "uncaught exception of type '" + type + "'";
    return found;
  }
  found.printed.error = type + ": " + lines[named + 1].substr(kWhat.size());
  for (std::size_t i = named + 1; i < lines.size() && found.printed.lines.size() < PrintedError::kMostLines; ++i) {
    if (lines[i].starts_with("Exception raised from ")) break;  // c10's call stack follows
    found.printed.lines.push_back(lines[i]);
  }
  return found;
}

/// 'file.cc:12' of 'program: file.cc:12: int main(): Assertion `x' failed.'; libstdc++ leaves the program's name out.
std::string assertion_location(std::string_view line, std::size_t assertion) {
  std::string_view before = line.substr(0, assertion);
  // The last ':<digits>:' before the function's name.
  for (auto colon = before.rfind(':'); colon != std::string_view::npos && colon > 0;
       colon = before.rfind(':', colon - 1)) {
    std::size_t digits = colon;
    while (digits > 0 && before[digits - 1] >= '0' && before[digits - 1] <= '9') --digits;
    if (digits == colon || digits < 2 || before[digits - 1] != ':') continue;
    std::size_t file = before.rfind(' ', digits - 1);
    file = std::max(file == std::string_view::npos ? 0 : file + 1, before.rfind('/', digits - 1) + 1);
    return std::string(before.substr(file, colon - file));
  }
  return {};
}

std::optional<FoundError> read_assertion(const std::vector<std::string>& lines, std::size_t named) {
  const std::string_view line(lines[named]);
  const auto assertion = line.find("Assertion ");
  if (assertion == std::string_view::npos || line.find(" failed", assertion) == std::string_view::npos) {
    return std::nullopt;
  }
  FoundError found{.line = named, .printed = {}, .most_after = kMostAfterOneLine};
  std::string_view error = trimmed(line.substr(assertion));
  if (error.ends_with('.')) error.remove_suffix(1);
  found.printed.error = error;
  found.printed.location = assertion_location(line, assertion);
  found.printed.lines.emplace_back(line);
  return found;
}

/// A Rust program prints the place on the first line and the reason on the second.
FoundError read_rust_panic(const std::vector<std::string>& lines, std::size_t named) {
  const std::string_view line(lines[named]);
  FoundError found{.line = named, .printed = {}};
  const auto at = line.find("panicked at ");
  std::string_view place = line.substr(at + 12);
  if (place.ends_with(':')) place.remove_suffix(1);
  found.printed.location = place;
  found.printed.error = named + 1 < lines.size() ? "panic: " + lines[named + 1] : std::string(line);
  for (std::size_t i = named; i < std::min(named + 2, lines.size()); ++i) found.printed.lines.push_back(lines[i]);
  return found;
}

std::string_view without_folder(std::string_view path) { return path.substr(path.rfind('/') + 1); }  // npos + 1 is 0

/// The program ends after it.
std::optional<FoundError> read_fault(const std::vector<std::string>& lines, std::size_t named) {
  const std::optional<FaultReport> report = parse_fault_report(lines[named]);
  if (!report) return std::nullopt;
  FoundError found{.line = named, .printed = {}, .most_after = FoundError::kNoLimit};
  if (!report->address.empty()) found.printed.error = "address " + std::string(report->address);
  if (!report->caller.empty()) {
    found.printed.error += (found.printed.error.empty() ? "in " : " in ") + std::string(without_folder(report->place));
  }
  found.printed.location = without_folder(report->own_place());
  found.printed.lines.push_back(lines[named]);
  return found;
}

/// Errors of one line, by their words. The program may have gone on after one.
constexpr std::array kTellingWords{
    std::string_view("WARNING: ThreadSanitizer: "),
    std::string_view(": runtime error: "),
    std::string_view("error while loading shared libraries: "),
    std::string_view("symbol lookup error: "),
    std::string_view("' not found (required by "),
    std::string_view("fatal error: "),
};

/// Errors of one line that end the program.
constexpr std::array kFatalTexts{
    std::string_view("ERROR: AddressSanitizer: "),
    std::string_view("ERROR: LeakSanitizer: "),
    std::string_view("ERROR: MemorySanitizer: "),
    std::string_view("terminate called without an active exception"),
    std::string_view("terminate called recursively"),
    std::string_view("pure virtual method called"),
    std::string_view("*** stack smashing detected ***"),
    std::string_view("*** buffer overflow detected ***"),
    std::string_view("double free or corruption"),
    std::string_view("free(): "),
    std::string_view("malloc(): "),
    std::string_view("realloc(): "),
    std::string_view("munmap_chunk(): invalid pointer"),
    std::string_view("corrupted size vs. prev_size"),
    std::string_view("corrupted double-linked list"),
};

bool is_the_last(std::string_view line) { return has_any(line, kFatalTexts) || line.starts_with(kGoPanic); }

bool is_telling(std::string_view line) { return has_any(line, kTellingWords) || is_the_last(line); }

/// Without the process's number at the start: '==4242==ERROR: …'.
std::string_view without_pid(std::string_view line) {
  if (!line.starts_with("==")) return line;
  const auto end = line.find("==", 2);
  return end == std::string_view::npos ? line : line.substr(end + 2);
}

/// Where the place begins in 'AddressSanitizer: heap-use-after-free /home/me/x.cc:3 in main'; npos: there is none. The
/// word 'in' may also follow a module's offset or a number of leaks.
std::size_t place_in_summary(std::string_view summary) {
  const auto in = summary.rfind(" in ");
  if (in == std::string_view::npos) return std::string_view::npos;
  const auto blank = summary.rfind(' ', in - 1);
  if (blank == std::string_view::npos) return std::string_view::npos;
  const std::string_view place = summary.substr(blank + 1, in - blank - 1);
  const auto colon = place.find(':');
  const bool numbered = colon != std::string_view::npos && colon > 0 && colon + 1 < place.size() &&
                        place.find_first_not_of("0123456789:", colon) == std::string_view::npos;
  return numbered ? blank + 1 : std::string_view::npos;
}

void add_summary(PrintedError& printed, std::string_view summary) {
  const std::size_t place = place_in_summary(summary);
  printed.error = trimmed(summary.substr(0, place));
  if (place == std::string_view::npos) return;
  const std::string_view location = summary.substr(place);
  printed.location = location.substr(location.rfind('/', location.find(" in ")) + 1);  // npos + 1 is 0
}

FoundError read_one_line(const std::vector<std::string>& lines, std::size_t named) {
  const bool last = is_the_last(lines[named]);
  FoundError found{.line = named, .printed = {}, .most_after = last ? FoundError::kNoLimit : kMostAfterOneLine};
  found.printed.error = trimmed(without_pid(lines[named]));
  found.printed.lines.push_back(lines[named]);
  for (std::size_t i = named + 1; i < lines.size(); ++i) {
    if (!lines[i].starts_with(kSummary)) continue;
    found.printed.lines.push_back(lines[i]);  // a sanitizer's summary has the source line and no addresses
    if (last) add_summary(found.printed, trimmed(std::string_view(lines[i]).substr(kSummary.size())));
    break;
  }
  return found;
}

std::optional<FoundError> find_error_at(const std::vector<std::string>& lines, std::size_t i) {
  const std::string_view line(lines[i]);
  if (line.find(kThrown) != std::string_view::npos) return read_exception(lines, i);
  if (line.find(" panicked at ") != std::string_view::npos && line.starts_with("thread '")) {
    return read_rust_panic(lines, i);
  }
  if (auto fault = read_fault(lines, i)) return fault;
  if (auto assertion = read_assertion(lines, i)) return assertion;
  if (!is_telling(line)) return std::nullopt;
  while (i > 0 && is_telling(lines[i - 1])) --i;  // 'terminate called' comes after the reason
  return read_one_line(lines, i);
}

}  // namespace

std::optional<FaultReport> parse_fault_report(std::string_view line) {
  constexpr std::array kBeginnings{std::string_view("lrun: SIGSEGV "), std::string_view("lrun: SIGBUS "),
                                   std::string_view("lrun: SIGFPE "), std::string_view("lrun: SIGILL ")};
  constexpr std::string_view kAddress = "at address ";
  constexpr std::string_view kPlace = "in ";
  constexpr std::string_view kCaller = ", called from ";
  const auto* const beginning = std::find_if(kBeginnings.begin(), kBeginnings.end(),
                                             [&](std::string_view words) { return line.starts_with(words); });
  if (beginning == kBeginnings.end()) return std::nullopt;
  line.remove_prefix(beginning->size());
  FaultReport report;
  if (line.starts_with(kAddress)) {
    line.remove_prefix(kAddress.size());
    report.address = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(report.address.size() + 1, line.size()));
  }
  if (!line.starts_with(kPlace)) return std::nullopt;
  line.remove_prefix(kPlace.size());
  const auto caller = line.rfind(kCaller);
  report.place = line.substr(0, caller);
  if (caller != std::string_view::npos) report.caller = line.substr(caller + kCaller.size());
  return report.place.empty() ? std::nullopt : std::optional(report);
}

std::optional<FoundError> find_native_error(const std::vector<std::string>& lines) {
  for (std::size_t i = lines.size(); i-- > 0;) {
    if (auto found = find_error_at(lines, i)) return found;
  }
  return std::nullopt;
}

}  // namespace lrun::inline core
