#include "faults/played_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "faults/link_proxy.h"
#include "support/elastic_log.h"
#include "support/launchers_of_a_job.h"

namespace lrun::test {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = JobDeed::Kind;

constexpr std::chrono::seconds kHeartbeat(2);
constexpr std::chrono::seconds kJoinTimeout(8);  // also for others in the place of lost ones
constexpr int kRefused = 125;

/// One launcher, from its start to its end.
struct Launcher {
  int number = 0;
  std::unique_ptr<LrunProcess> process;
  bool killed = false;
  bool terminated = false;
  LrunEnd end;
};

std::string end_text(const LrunEnd& end) {
  return end.exited ? fmt::format("exited with {}", end.code) : fmt::format("died of signal {}", end.signal_number);
}

bool is_end_of_worker_killed(const LrunEnd& end) { return end.exited && end.code == 128 + SIGKILL; }

bool is_end_of_job_terminated(const LrunEnd& end) {
  return (end.exited && end.code == 128 + SIGTERM) || (!end.exited && end.signal_number == SIGTERM);
}

/// One job and its problems.
class Play {
 public:
  explicit Play(const JobPlan& plan) : plan_(plan), rendezvous_(static_cast<std::uint16_t>(free_port())) {
    for (int i = 1; i < plan.launchers; ++i) proxies_[i] = std::make_unique<LinkProxy>(rendezvous_);
  }

  PlayedJob run() {
    for (int i = 0; i < plan_.launchers; ++i) {
      if (!plan_.late[static_cast<std::size_t>(i)]) start(i);
    }
    if (!plan_.begins_at_once) wait_for_training();
    for (const JobDeed& deed : plan_.deeds) {
      std::this_thread::sleep_for(deed.after);
      do_to(deed);
    }
    std::this_thread::sleep_for(plan_.goes_on_for);
    let_it_end();
    for (Launcher& launcher : launchers_) check_end(launcher);
    played_.to_the_end = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - ending_);
    check_one_verdict();
    check_remains();
    return std::move(played_);
  }

 private:
  void complain(const std::string& problem) { played_.problems.push_back(problem); }

  static std::string name_of(int number) { return fmt::format("node{}", number); }

  void start(int number) {
    const int port = number == 0 ? rendezvous_ : proxies_[number]->port();
    std::vector<std::string> words{"--rdzv-id",
                                   "random",
                                   "--rdzv-endpoint",
                                   fmt::format("127.0.0.1:{}", port),
                                   "--rdzv-backend",
                                   plan_.backend,
                                   "--nnodes",
                                   fmt::format("{}:{}", plan_.least, plan_.most),
                                   "--devices",
                                   std::to_string(plan_.workers),
                                   "--max-restarts",
                                   std::to_string(plan_.max_restarts),
                                   "--restart-backoff",
                                   "50ms",
                                   "--grace",
                                   "1s",
                                   "--rdzv-conf",
                                   fmt::format("is_host={},heartbeat_timeout={},join_timeout={},last_call_timeout=1",
                                               number == 0, kHeartbeat.count(), kJoinTimeout.count())};
    // Only the first has a place: others may be more than there are.
    if (number == 0) words.insert(words.end(), {"--node-rank", "0"});
    words.insert(words.end(), {"--", LRUN_ELASTIC_WORKER, folder_.path().string(), name_of(number)});
    launchers_.push_back({number, std::make_unique<LrunProcess>(words, LrunProcess::Options{})});
  }

  [[nodiscard]] bool has_trained() const {
    const auto events = read_log(folder_.path());
    return std::any_of(events.begin(), events.end(), [](const ElasticEvent& event) { return event.kind == "step"; });
  }

  /// Or until none can begin any more.
  void wait_for_training() {
    (void)eventually([&] {
      return has_trained() || std::all_of(launchers_.begin(), launchers_.end(), [](const Launcher& launcher) {
               return process_state(launcher.process->pid()) == 'Z';
             });
    });
  }

  /// The last one of this number; null: there is none that runs.
  Launcher* find(int number) {
    const auto found = std::find_if(launchers_.rbegin(), launchers_.rend(),
                                    [&](const Launcher& launcher) { return launcher.number == number; });
    if (found == launchers_.rend() || found->killed || process_state(found->process->pid()) == 'Z') return nullptr;
    return &*found;
  }

  void do_to(const JobDeed& deed) {
    if (deed.kind == Kind::kStart) return find(deed.launcher) == nullptr ? start(deed.launcher) : void();
    if (Launcher* const launcher = find(deed.launcher)) do_to(deed.kind, *launcher);
  }

  void do_to(Kind kind, Launcher& launcher) {
    LrunProcess& process = *launcher.process;
    const pid_t inner = process.launcher_pid();
    switch (kind) {
      case Kind::kKillAll:
        launcher.killed = true;
        process.signal(SIGSTOP);  // the guard would end by itself between the two
        ::kill(inner, SIGKILL);
        return process.signal(SIGKILL);
      case Kind::kKillGuard:
        launcher.killed = true;
        return process.signal(SIGKILL);
      case Kind::kKillLauncher:
        if (::kill(inner, SIGKILL) == 0) launcher.killed = true;
        return;
      case Kind::kKillWorker:
        if (const auto workers = process.workers(); !workers.empty()) ::kill(workers.front(), SIGKILL);
        return;
      case Kind::kTerminate:
        launcher.terminated = true;
        return process.signal(SIGTERM);
      case Kind::kStopLauncher:
        ::kill(inner, SIGSTOP);
        return process.signal(SIGSTOP);
      case Kind::kStopNode:
        return signal_all(process, SIGSTOP);
      case Kind::kContinue:
        return signal_all(process, SIGCONT);
      default:
        return connect(kind, launcher.number);
    }
  }

  static void signal_all(const LrunProcess& process, int number) {
    process.signal(number);  // it may not have executed lrun yet, by which the others are known
    for (const pid_t pid : process.processes()) ::kill(pid, number);
  }

  void connect(Kind kind, int number) {
    const auto proxy = proxies_.find(number);
    if (proxy == proxies_.end()) return;
    const std::map<Kind, LinkProxy::Cut> cuts{{Kind::kCut, LinkProxy::Cut::kBothWays},
                                              {Kind::kCutToLeader, LinkProxy::Cut::kToLeader},
                                              {Kind::kCutFromLeader, LinkProxy::Cut::kFromLeader},
                                              {Kind::kHeal, LinkProxy::Cut::kNone}};
    proxy->second->cut(cuts.at(kind));
  }

  /// Stopped launchers continue, and the training ends with the next step of all ranks.
  void let_it_end() {
    for (const Launcher& launcher : launchers_) signal_all(*launcher.process, SIGCONT);
    for (const auto& [number, proxy] : proxies_) {
      if (plan_.heals) proxy->cut(LinkProxy::Cut::kNone);
    }
    std::ofstream(folder_ / "end") << "end\n";
    ending_ = Clock::now();
  }

  void check_end(Launcher& launcher) {
    launcher.end = launcher.process->wait();  // complains when a minute is not enough
    played_.transcript += fmt::format("launcher {} {}: {}\n{}", launcher.number, launcher.killed ? "was killed" : "",
                                      end_text(launcher.end), launcher.process->err());
    if (launcher.killed) return;
    const bool fits = (launcher.end.exited && (launcher.end.code == 0 || launcher.end.code == kRefused)) ||
                      (has_deed(plan_, Kind::kKillWorker) && is_end_of_worker_killed(launcher.end)) ||
                      (has_deed(plan_, Kind::kTerminate) && is_end_of_job_terminated(launcher.end));
    if (!fits) complain(fmt::format("launcher {} {}", launcher.number, end_text(launcher.end)));
    const bool is_well = launcher.end.exited && launcher.end.code == 0;
    if (!is_well && !launcher.terminated && !contains(launcher.process->err(), "error: ")) {
      complain(fmt::format("launcher {} does not say why it {}", launcher.number, end_text(launcher.end)));
    }
  }

  /// No deed was done to it, and it was there from the beginning: on a busy machine it may come when the job is over.
  /// (A launcher that is stopped may have been given up.)
  [[nodiscard]] bool is_undisturbed(const Launcher& launcher) const {
    return began_.count(name_of(launcher.number)) != 0 && !plan_.late[static_cast<std::size_t>(launcher.number)] &&
           !is_disturbed(plan_, launcher.number) && !contains(launcher.process->err(), "silent for") &&
           !contains(launcher.process->err(), "silence for");
  }

  /// Success for all of them, or for none.
  void check_one_verdict() {
    for (const ElasticEvent& event : read_log(folder_.path())) began_.insert(event.node);
    std::set<std::string> ends;
    for (const Launcher& launcher : launchers_) {
      if (is_undisturbed(launcher))
        ends.insert(launcher.end.exited && launcher.end.code == 0 ? "success" : "a verdict");
    }
    if (ends.size() > 1) complain("some launchers that met with nothing succeeded, and some did not");
    played_.end = ends.empty() ? "nobody was left alone" : *ends.begin();
  }

  void check_remains() {
    for (const Launcher& launcher : launchers_) {
      const LrunProcess& process = *launcher.process;
      if (!eventually([&] { return process.processes().empty(); }, 10s)) {
        complain(fmt::format("processes of launcher {} are left", launcher.number));
      }
    }
    for (const std::string& problem : problems_of_job(folder_.path())) complain(problem);
    std::set<std::string> rounds;
    for (const ElasticEvent& event : read_log(folder_.path())) {
      if (event.kind == "step") rounds.insert(event.round);
    }
    played_.rounds = static_cast<int>(rounds.size());
  }

  const JobPlan& plan_;
  TemporaryFolder folder_;
  std::uint16_t rendezvous_;
  std::map<int, std::unique_ptr<LinkProxy>> proxies_;
  std::vector<Launcher> launchers_;
  PlayedJob played_;
  std::set<std::string> began_;  ///< nodes whose workers have met others
  Clock::time_point ending_;
};

}  // namespace

PlayedJob play(const JobPlan& plan) { return Play(plan).run(); }

}  // namespace lrun::test
