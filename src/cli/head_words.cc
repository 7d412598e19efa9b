#include "cli/head_words.h"

#include <exception>

#include "base/colour_decision.h"
#include "base/fd.h"

namespace lrun {
namespace {

int head_descriptor = -1;

constexpr char kFirstSeverity = 'a';

}  // namespace

void speak_through_head(int fd, bool colour) {
  head_descriptor = fd;
  decide_colour(colour);
}

bool speaks_through_head() { return head_descriptor >= 0; }

void tell_head(NodeFrame::Kind kind, std::string_view payload) noexcept {
  try {
    (void)write_all(head_descriptor, encode(kind, payload));
  } catch (const std::exception&) {  // out of memory: the run's end tells enough
  }
}

void tell_head(Severity severity, std::string_view text) noexcept {
  try {
    std::string payload(1, static_cast<char>(kFirstSeverity + static_cast<char>(severity)));
    tell_head(NodeFrame::Kind::kOwnWords, payload.append(text));
  } catch (const std::exception&) {
  }
}

std::string words_of_node(const std::string& payload, const std::string& host, bool colour) {
  if (payload.empty()) return {};
  const int severity = payload.front() - kFirstSeverity;
  if (severity < 0 || severity > static_cast<int>(Severity::kHint)) return payload;
  const std::string text = payload.substr(1);
  return message_line(static_cast<Severity>(severity), host.empty() ? text : host + ": " + text, colour);
}

}  // namespace lrun
