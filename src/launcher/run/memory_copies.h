#pragma once

#include <functional>
#include <vector>

#include "base/event_loop.h"
#include "copies/copier.h"
#include "rendezvous/membership.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// The launcher's side of the copies of files in memory: tells the copier of each round, and holds this node's workers
/// back until the files of lost nodes that are for it have come. One thread.
class MemoryCopies {
 public:
  /// Everything must outlive this.
  MemoryCopies(EventLoop& loop, CopierProcess& copier, MessageSink& sink);
  MemoryCopies(const MemoryCopies&) = delete;
  MemoryCopies& operator=(const MemoryCopies&) = delete;

  /// A round begins.
  void enter(const Membership& membership);
  /// Files are coming: workers that start now would not find them.
  [[nodiscard]] bool is_fetching() const { return limit_.armed(); }
  /// Calls `done` when they have come, and no other that was given before. Empty: nobody waits any more.
  void when_fetched(std::function<void()> done) { done_ = std::move(done); }

  /// The nodes whose files this one has copies of, for the leader.
  [[nodiscard]] const std::vector<FileOwner>& keeps() const { return keeps_; }
  /// Of the copier; 0 once it has ended.
  [[nodiscard]] pid_t pid() const { return copier_.pid(); }

 private:
  [[nodiscard]] bool has_given_up() const;
  void start();
  void copier_ended();
  void read();
  void tell_refusal(const std::string& why);
  void tell_fetched(const std::vector<FetchedFiles>& all);
  void finish();

  EventLoop& loop_;
  CopierProcess& copier_;
  MessageSink& sink_;
  int starts_ = 0;  ///< of the copier
  CopierOrder order_;
  std::vector<FileOwner> keeps_;
  std::function<void()> done_;
  EventLoop::Watch news_;
  EventLoop::Timer start_;
  EventLoop::Timer limit_;  ///< while files are coming
};

}  // namespace lrun::launcher
