#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/message.h"
#include "remote/node_frames.h"

namespace lrun::launcher {

/// News from the head, in memory that processes forked from here share: which signals it has passed on to this host
/// (they come to all hosts, and the process that hears of one first need not be the one that acts on it), and that the
/// connection to it was lost.
class HeadSignals {
 public:
  /// \throws std::system_error  there is no memory.
  HeadSignals();
  HeadSignals(const HeadSignals&) = delete;
  HeadSignals& operator=(const HeadSignals&) = delete;
  ~HeadSignals();

  /// Before it is sent to who runs the workers.
  void note(int signal_number);
  [[nodiscard]] bool has(int signal_number) const;
  /// Before a signal that stands for it.
  void note_loss();
  [[nodiscard]] bool is_lost() const;

 private:
  struct Shared {
    std::atomic<std::uint64_t> numbers{0};  ///< a bit each
    std::atomic<bool> is_lost{false};
  };
  Shared* shared_;
};

/// From now on the words of this lrun go, as frames, to the one that started it on this host, which shows them once for
/// all hosts. \param fd  of a pipe that is always read; belongs to the process. \param colour  the other end's console
/// takes it. \param signals  of that head; lives as long as the process.
void speak_through_head(int fd, bool colour, const HeadSignals& signals);

/// Somebody else shows our words.
bool speaks_through_head();

/// True when the head has passed this signal on: the user sent it to all of the run.
bool passed_on_by_head(int signal_number);

/// There was a head, and the connection to it was lost.
bool head_is_lost();

/// Sends a frame; what cannot be sent is lost. Only after speak_through_head().
void tell_head(NodeFrame::Kind kind, std::string_view payload) noexcept;

/// Words about this node alone, of which the head shows the host: 'warning' and its text.
void tell_head(Severity severity, std::string_view text) noexcept;

/// What tell_head() sent, as the head shows it. Words without a severity stand as they are.
/// \param host  that said it; empty: this host, or all say the same.
std::string words_of_node(const std::string& payload, const std::string& host, bool colour);

}  // namespace lrun::launcher
