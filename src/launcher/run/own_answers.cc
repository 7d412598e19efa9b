// In: questions of other launchers, or of the head. Out: this launcher's answer, cut to its share. NodeLauncher owns
// one.
#include "run/own_answers.h"

#include <utility>

#include "report/stack_text.h"

namespace lrun::launcher {

OwnAnswers::OwnAnswers(EventLoop& loop, LookAtRanks look, std::function<RunStatus()> status,
                       std::function<std::string()> standstill)
    : loop_(loop), look_at_(std::move(look)), status_(std::move(status)), standstill_(std::move(standstill)) {}

void OwnAnswers::answer(const std::string& text, Reply reply) {
  const Question question = question_from(text);
  if (question.asked == Asked::kNothing) return;
  if (question.asked == Asked::kStatus) return reply(numbered_answer(question, measured_status()));
  if (question.asked == Asked::kStandstill) return reply(numbered_answer(question, standstill_()));
  const bool brief = question.asked == Asked::kBriefStack;
  Look& wanted = brief ? brief_ : full_;
  wanted.askers.push_back({question, std::move(reply)});
  if (wanted.askers.size() == 1) look(wanted, brief);
}

std::string OwnAnswers::measured_status() {
  RunStatus status = status_();
  meter_.measure(status, read_process_table());
  return to_json_within(status, most_answer_bytes(status.nodes));
}

/// All that ask meanwhile get the same answer: a process has one debugger.
void OwnAnswers::look(Look& look, bool brief) {
  const RunStatus status = status_();
  std::vector<RankProcess> processes;
  for (const WorkerStatus& worker : status.workers) {
    processes.push_back({worker.rank, worker.running ? worker.pid : 0});
  }
  const LauncherStacks whose{.host = status.host, .pid = status.pid, .ranks = static_cast<int>(processes.size())};
  look.under_way = look_at_(loop_, processes, brief ? LookKind::kBrief : LookKind::kFull,
                            [&look, stacks = whose, most = most_answer_bytes(status.nodes)](
                                const std::optional<std::vector<StackSample>>& samples, const std::string& problem) {
                              LauncherStacks all = stacks;
                              all.samples = samples.value_or(std::vector<StackSample>());
                              if (!samples) all.problem = problem;
                              const std::string answer = to_json_within(std::move(all), most);
                              const std::shared_ptr<void> ended = std::exchange(look.under_way, nullptr);
                              for (const Look::Asker& asker : std::exchange(look.askers, {})) {
                                asker.reply(numbered_answer(asker.question, answer));
                              }
                            });
}

}  // namespace lrun::launcher
