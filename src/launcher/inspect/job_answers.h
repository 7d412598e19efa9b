#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "inspect/control_socket.h"

namespace lrun::launcher {

/// Asks where ranks stand still that no debugger may stop.
inline constexpr std::string_view kStandstillWords = "standstill";

/// Asks where ranks are, without native stacks where Python's are known.
inline constexpr std::string_view kBriefStackWords = "stack --brief";

/// In front of a command for all launchers of the job.
inline constexpr std::string_view kJobCommand = "job ";

/// The thing that a person, or another launcher, wants to know of a launcher's ranks.
enum class Asked { kNothing, kStatus, kStack, kBriefStack, kStandstill };

/// A question to the launchers of a job, and what answers name: '7 status', '7 stack', '7 stack --brief'. Pure.
struct Question {
  int number = 0;
  Asked asked = Asked::kNothing;  ///< kNothing: it cannot be read

  bool operator==(const Question&) const = default;
};
Question question_from(std::string_view text);
/// The answer as it travels: the question's number, and the answer on a line of its own.
std::string numbered_answer(const Question& question, const std::string& answer);

/// The most bytes of an answer in a job of so many launchers. All answers wait in the memory of one that passes them
/// on.
std::size_t most_answer_bytes(int nodes);

/// Gathers the answers of all launchers of a job to a question, until all have answered or it takes too long. Several
/// askers of one thing at a time share the answers. One thread.
class JobAnswers {
 public:
  /// Asks all launchers; their answers come through add(), at once or later. \return how many are to come
  using Ask = std::function<std::size_t(const std::string& question)>;

  JobAnswers(EventLoop& loop, Ask ask) : loop_(loop), ask_(std::move(ask)) {}
  JobAnswers(const JobAnswers&) = delete;
  JobAnswers& operator=(const JobAnswers&) = delete;

  /// \param words  'status', 'stack', 'stack --brief' or 'standstill' \param reply  gets what answers_of_job() reads
  void ask(const std::string& words, const ControlSocket::Reply& reply);
  /// A numbered_answer(). One to an earlier question is too late.
  void add(std::string_view answer);

 private:
  struct Open {
    int number = 0;
    std::vector<ControlSocket::Reply> askers;
    std::vector<std::string> answers;
    std::size_t expected = std::numeric_limits<std::size_t>::max();  ///< until all were asked
    EventLoop::Timer limit;
  };

  void finish(const std::string& words);

  EventLoop& loop_;
  Ask ask_;
  std::map<std::string, Open> open_;  ///< by the words
  int last_number_ = 0;
};

/// The answers of launchers that one has gathered, of which each is a line of JSON.
std::string job_answers_text(const std::vector<std::string>& answers);
/// Reads such text; what could be read counts. Pure.
std::vector<std::string> answers_of_job(std::string_view text);

}  // namespace lrun::launcher
