// In: questions through the control socket of a launcher or a head, and what the launchers of the job answer. Out: one
// text with all answers. NodeLauncher and HeadRecord own one.
#include "inspect/job_answers.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"
#include "base/split.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

struct Words {
  std::string_view text;
  Asked asked;
  Duration patience;  ///< a second more than a launcher takes for its ranks
};
constexpr std::array<Words, 4> kWords{{{"status", Asked::kStatus, Duration(1000)},
                                       {"stack", Asked::kStack, Duration(36'000)},
                                       {kBriefStackWords, Asked::kBriefStack, Duration(6000)},
                                       {kStandstillWords, Asked::kStandstill, Duration(1000)}}};

const Words* words_from(std::string_view text) {
  const auto* const found =
      std::find_if(kWords.begin(), kWords.end(), [&](const Words& it) { return it.text == text; });
  return found == kWords.end() ? nullptr : found;
}

}  // namespace

Question question_from(std::string_view text) {
  const std::optional<int> number = natural_number(cut(text, ' '));
  const Words* const words = words_from(text);
  return number && words != nullptr ? Question{*number, words->asked} : Question();
}

std::string numbered_answer(const Question& question, const std::string& answer) {
  return fmt::format("{}\n{}", question.number, answer);
}

std::size_t most_answer_bytes(int nodes) {
  constexpr std::size_t kMostOfOne = std::size_t{60} << 10U;
  constexpr std::size_t kMostOfJob = std::size_t{1} << 20U;
  return std::min(kMostOfOne, kMostOfJob / static_cast<std::size_t>(std::max(1, nodes)));
}

void JobAnswers::ask(const std::string& words, const ControlSocket::Reply& reply) {
  const Words* const known = words_from(words);
  if (known == nullptr) return reply(job_answers_text({}));
  Open& open = open_[words];
  open.askers.push_back(reply);
  if (open.limit.armed()) return;
  open.number = ++last_number_;
  open.limit = loop_.after(known->patience, [this, words] { finish(words); });
  open.expected = ask_(fmt::format("{} {}", open.number, words));
  if (open.answers.size() >= open.expected) finish(words);
}

void JobAnswers::add(std::string_view answer) {
  const std::optional<int> number = natural_number(cut(answer, '\n'));
  const auto open =
      std::find_if(open_.begin(), open_.end(), [&](const auto& it) { return it.second.number == number; });
  if (open == open_.end()) return;
  open->second.answers.emplace_back(answer);
  if (open->second.answers.size() >= open->second.expected) finish(std::string(open->first));
}

void JobAnswers::finish(const std::string& words) {
  const auto node = open_.extract(words);  // an asker may ask again
  const std::string text = job_answers_text(node.mapped().answers);
  for (const ControlSocket::Reply& reply : node.mapped().askers) reply(text);
}

std::string job_answers_text(const std::vector<std::string>& answers) {
  return json_text({{"schema", 1}, {"launchers", answers}});
}

std::vector<std::string> answers_of_job(std::string_view text) {
  std::vector<std::string> answers;
  try {
    const auto json = nlohmann::json::parse(text);
    for (const auto& answer : json.at("launchers")) answers.push_back(answer.get<std::string>());
  } catch (const nlohmann::json::exception&) {  // what could be read counts
    return answers;
  }
  return answers;
}

}  // namespace lrun::launcher
