#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "remote/frames.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// News from the head, in memory that processes forked from here share: which signals it has passed on to all hosts,
/// and that the connection to it was lost. The process that receives the news need not be the one that acts on it.
class HeadSignals {
 public:
  /// \throws std::system_error  there is no memory.
  HeadSignals();
  HeadSignals(const HeadSignals&) = delete;
  HeadSignals& operator=(const HeadSignals&) = delete;
  ~HeadSignals();

  /// Call it before the signal is sent to the launcher of the workers.
  void note(int signal_number);
  [[nodiscard]] bool has(int signal_number) const;
  /// Call it before the signal that stands for the loss.
  void note_loss();
  [[nodiscard]] bool is_lost() const;

 private:
  struct Shared {
    std::atomic<std::uint64_t> numbers{0};  ///< a bit each
    std::atomic<bool> is_lost{false};
  };
  Shared* shared_;
};

/// Prints through the head: the lines of this launcher go there as frames, and the head shows each thing once for all
/// hosts. Frames that cannot be sent are lost.
class HeadChannel final : public MessageSink {
 public:
  /// \param fd  of a socket that is always read; belongs to the process
  /// \param colour  the head's console takes it
  /// \param signals  from that head; must outlive this
  HeadChannel(int fd, bool colour, const HeadSignals& signals) : fd_(fd), colour_(colour), signals_(signals) {}

  /// The head shows the host in front of the text.
  void print(Severity severity, std::string_view text) noexcept override;
  void print_lines(std::string_view lines) noexcept override;
  void print_of_job(std::string_view lines) noexcept override;
  [[nodiscard]] bool colour() const noexcept override { return colour_; }

  /// This node has met the others, or its workers run where it is alone.
  void send_begun() noexcept;

  /// Calls `asked` with each question of the head, until stop_listening().
  void listen(EventLoop& loop, std::function<void(const std::string& question)> asked);
  void stop_listening() { readable_.cancel(); }
  void send_told(std::string_view answer) noexcept;

  /// The head has passed this signal on: the user sent it to all of the run.
  [[nodiscard]] bool passed_on(int signal_number) const { return signals_.has(signal_number); }
  /// The connection to the head was lost.
  [[nodiscard]] bool is_lost() const { return signals_.is_lost(); }

 private:
  void send(NodeFrame::Kind kind, std::string_view payload) noexcept;
  void read_some();

  int fd_;
  bool colour_;
  const HeadSignals& signals_;
  NodeFrameReader questions_;
  std::function<void(const std::string& question)> asked_;
  EventLoop::Watch readable_;
};

/// Where the messages of a launcher go.
struct LauncherOutput {
  MessageSink& sink;
  HeadChannel* head = nullptr;  ///< the same sink, where a head has started this launcher; nullptr: no head
};

/// The payload of HeadChannel::print() and print_lines() as the head shows it; rendered lines stay as they are.
/// \param host  that sent it; empty: this host, or all send the same.
std::string text_of_node(const std::string& payload, const std::string& host, bool colour);

}  // namespace lrun::launcher
