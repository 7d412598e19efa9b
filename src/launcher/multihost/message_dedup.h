#pragma once

#include <cstddef>
#include <deque>
#include <set>
#include <string>
#include <vector>

namespace lrun::launcher {

/// Which of the words that the launchers of a job say are shown, so that each thing is told once. All of them tell what
/// happens to the job: those of the first host that is connected are shown, the others' are kept for the case that it
/// is lost: the newest of them, and without what was told already. What a launcher says of its own host is shown unless
/// another has said the same. Pure.
class MessageDedup {
 public:
  explicit MessageDedup(std::size_t hosts) : hosts_(hosts) {}

  /// \return what is to be shown now; empty: nothing.
  std::string of_job(std::size_t host, const std::string& text);
  [[nodiscard]] bool is_new(const std::string& text) { return told_.insert(text).second; }
  /// The host is not connected any more and has not said its last word. \return what is to be shown in its place.
  std::string lost(std::size_t host);

  /// Whose words about the job are shown; the number of hosts: all are lost.
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
    Texts untold;  ///< what it has said and nobody has told
    Texts ahead;   ///< what was told and it has not said yet
    bool lost = false;
  };

  std::string tell(const std::string& text);

  std::vector<Host> hosts_;
  std::size_t voice_ = 0;
  std::set<std::string> told_;
};

}  // namespace lrun::launcher
