#pragma once

#include <cstddef>
#include <deque>
#include <set>
#include <string>
#include <vector>

namespace lrun::launcher {

/// Chooses which messages of a job's launchers are shown, so that each is shown once. All launchers report what happens
/// to the job: the head shows those of the first host that is connected. It keeps the newest of the others', less those
/// that were shown, for the case that the first host is lost. A launcher's message about its own host is shown unless
/// another launcher has sent the same. Pure.
class MessageDedup {
 public:
  explicit MessageDedup(std::size_t hosts) : hosts_(hosts) {}

  /// \return the text to show now; empty: nothing.
  std::string of_job(std::size_t host, const std::string& text);
  [[nodiscard]] bool is_new(const std::string& text) { return told_.insert(text).second; }
  /// The host was lost before it had reported its end. \return the text to show in its place.
  std::string lost(std::size_t host);

  /// The host whose messages about the job are shown; the number of hosts: all are lost.
  [[nodiscard]] std::size_t voice() const { return voice_; }

 private:
  /// The newest of a sequence of texts.
  class Texts {
   public:
    void keep(const std::string& text);
    /// Drops this text and those before it. \return false: it is not here.
    bool drop_through(const std::string& text);
    [[nodiscard]] const std::deque<std::string>& all() const { return texts_; }

   private:
    void drop_oldest();

    std::deque<std::string> texts_;
    std::size_t bytes_ = 0;
  };
  struct Host {
    Texts untold;  ///< sent by the host and not shown
    Texts ahead;   ///< shown, and not yet sent by the host
    bool lost = false;
  };

  std::string tell(const std::string& text);

  std::vector<Host> hosts_;
  std::size_t voice_ = 0;
  std::set<std::string> told_;
};

}  // namespace lrun::launcher
