#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace lrun {

/// Which of the words that the launchers of a job say are shown, so that each thing is told once. All of them tell what
/// happens to the job: those of the first host that is connected are shown, the others' are kept for the case that it
/// is lost. What a launcher says of its own host is shown unless another has said the same. Pure.
class HostsWords {
 public:
  explicit HostsWords(std::size_t hosts) : hosts_(hosts) {}

  /// \return what is to be shown now; empty: nothing.
  std::string of_job(std::size_t host, const std::string& text);
  [[nodiscard]] bool is_new(const std::string& text) { return told_.insert(text).second; }
  /// The host is not connected any more and has not said its last word. \return what is to be shown in its place.
  std::string lost(std::size_t host);

  /// Whose words about the job are shown; the number of hosts: all are lost.
  [[nodiscard]] std::size_t voice() const { return voice_; }

 private:
  struct Kept {
    std::string text;
    bool lost = false;
  };
  std::vector<Kept> hosts_;
  std::size_t voice_ = 0;
  std::set<std::string> told_;
};

}  // namespace lrun
