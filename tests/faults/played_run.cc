#include "faults/played_run.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

#include "faults/remains.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
}

/// The last lines that fit, each cut.
std::string shortened_to(std::size_t most, const std::string& text) {
  constexpr std::size_t kColumns = 180;
  std::string shown;
  std::size_t end = text.size();
  while (end > 0 && shown.size() < most) {
    const auto before = text.rfind('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    shown.insert(0, text.substr(begin, std::min(end - begin, kColumns)) + "\n");
    end = before == std::string::npos ? 0 : before;
  }
  return shown;
}

std::string end_text(const LrunEnd& end) {
  return end.exited ? fmt::format("exited with {}", end.code) : fmt::format("died of signal {}", end.signal_number);
}

/// One run and its problems.
class Play {
 public:
  explicit Play(const RunPlan& plan) : plan_(plan), lrun_(arguments(), options()), began_(Clock::now()) {}

  PlayedRun run() {
    do_deeds();
    const LrunEnd end = lrun_.wait();
    played_.to_the_end = since(began_);
    wait_for_the_last();
    check_end(end);
    check_named();
    for (std::string& problem : problems_in(folder_.path(), lrun_.state(), plan_)) complain(std::move(problem));
    played_.transcript =
        fmt::format("lrun {} after {} ms\nstdout: {}\nstderr: {}", end_text(end), played_.to_the_end.count(),
                    shortened_to(400, lrun_.out()), shortened_to(4000, lrun_.err()));
    return std::move(played_);
  }

 private:
  std::vector<std::string> arguments() {
    (void)folder_.script("bad-interpreter", "#!/no/such/interpreter\n");
    (void)folder_.script("not-a-program", "no program\n");
    std::filesystem::create_directory(folder_ / "tmp");
    std::vector<std::string> words = plan_.options;
    words.emplace_back("--");
    words.push_back(plan_.program.empty() ? LRUN_FAULT_ACTOR : plan_.program);
    words.insert(words.end(), plan_.scripts.begin(), plan_.scripts.end());
    for (std::string& word : words) {
      if (word.starts_with("@/")) word = (folder_ / word.substr(2)).string();
    }
    return words;
  }

  LrunProcess::Options options() {
    return {.environment = {{"TMPDIR", (folder_ / "tmp").string()}}, .before_exec = [this] {
              const auto files = static_cast<rlim_t>(plan_.file_limit);
              const rlimit file_limit{files, files};
              if (files > 0) ::setrlimit(RLIMIT_NOFILE, &file_limit);
              const auto bytes = static_cast<rlim_t>(plan_.file_size_limit);
              const rlimit size_limit{bytes, bytes};
              if (bytes > 0) ::setrlimit(RLIMIT_FSIZE, &size_limit);
              (void)!::chdir(folder_.path().c_str());
            }};
  }

  void complain(std::string problem) { played_.problems.push_back(std::move(problem)); }

  /// The pid that the worker of this rank has reported; 0 before that.
  [[nodiscard]] pid_t pid_of(int rank) const {
    std::ifstream file(folder_ / fmt::format("ready.{}.0", rank));
    pid_t pid = 0;
    file >> pid;
    return pid;
  }

  bool wait_for_all() {
    int rank = 0;
    // Output must be read meanwhile, or no worker gets ready.
    (void)lrun_.read_until([&] {
      while (rank < plan_.world_size && pid_of(rank) > 0) ++rank;
      return rank == plan_.world_size || has_ended();
    });
    return rank == plan_.world_size;
  }

  [[nodiscard]] bool has_ended() const { return process_state(lrun_.pid()) == 'Z'; }

  void do_deeds() {
    if (plan_.deeds.empty()) return;
    if (plan_.when_ready && !wait_for_all()) return complain("the workers were not ready in time");
    for (const Deed& deed : plan_.deeds) {
      (void)lrun_.read_until([begin = Clock::now(), &deed] { return Clock::now() - begin >= deed.after; });
      if (launcher_ == kNoProcess) launcher_ = lrun_.launcher_pid();
      if (deed.target == Deed::Target::kConsole) {
        lrun_.close_stdout();
      } else if (deed.target == Deed::Target::kRunFolder) {
        std::error_code removed_meanwhile;
        std::filesystem::remove_all(lrun_.run_folder(), removed_meanwhile);
      } else if (const pid_t pid = target_of(deed); pid > 0) {
        ::kill(pid, deed.signal_number);
      }
    }
    began_ = Clock::now();
  }

  pid_t target_of(const Deed& deed) {
    if (deed.target == Deed::Target::kWorker) {
      // It may have ended, and its number may be another's by now.
      const pid_t worker = pid_of(deed.rank);
      return worker > 0 && lrun_.is_process(worker) ? worker : -1;
    }
    if (deed.target == Deed::Target::kGuard) return lrun_.pid();
    // Known from its parent, and still there when that one is gone.
    (void)eventually([&] {
      if (launcher_ == kNoProcess) launcher_ = lrun_.launcher_pid();
      return launcher_ != kNoProcess || has_ended();
    });
    return lrun_.is_process(launcher_) ? launcher_ : -1;
  }

  /// Everything must be gone a second after lrun, but on a loaded machine.
  void wait_for_the_last() {
    const auto begin = Clock::now();
    const bool gone = eventually([&] { return lrun_.processes().empty() && !anybody_lives(folder_.path()); }, 10s);
    played_.to_the_last = since(begin);
    if (!gone) complain(fmt::format("{} processes are left", lrun_.processes().size()));
    if (played_.to_the_end > plan_.limit) {
      complain(fmt::format("the end took {} ms, more than {}", played_.to_the_end.count(), plan_.limit.count()));
    }
  }

  void check_end(const LrunEnd& end) {
    const Expectation& expected = plan_.expected;
    check_told_alike(end);
    if (expected.anything) return;
    const bool right = expected.exit_code >= 0 ? end.exited && end.code == expected.exit_code
                                               : !end.exited && end.signal_number == expected.signal_number;
    // If lrun blames another worker, its exit code differs, too: that counts once, as a wrong name.
    if (!right && expected.culprit < 0) complain("lrun " + end_text(end));
    ends_right_ = right;
    if (lrun_.err().find(expected.says) == std::string::npos) complain("lrun does not say: " + expected.says);
  }

  /// lrun's exit code, result.json and the verdict must agree. (A killed lrun writes neither.)
  void check_told_alike(const LrunEnd& end) {
    const bool killed = std::any_of(plan_.deeds.begin(), plan_.deeds.end(), [](const Deed& deed) {
      return deed.target != Deed::Target::kWorker && deed.signal_number == SIGKILL;
    });
    const Result result = read_result(lrun_.state());
    if (killed || result.reason.empty()) return;
    const int code = end.exited ? end.code : 128 + end.signal_number;
    if (result.exit_code != code)
      complain(fmt::format("result.json has the exit code {}, lrun's is {}", result.exit_code, code));
    const std::string name = fmt::format("lrun: note: rank {} ran for ", result.culprit);
    if (result.reason == "worker_failed" && lrun_.err().find(name) == std::string::npos)
      complain(fmt::format("result.json blames rank {}, the verdict does not", result.culprit));
  }

  void check_named() {
    const Expectation& expected = plan_.expected;
    played_.has_culprit = expected.culprit >= 0 || (!expected.says.empty() && expected.exit_code != 125);
    const Result result = read_result(lrun_.state());
    if (!expected.reason.empty() && result.reason != expected.reason &&
        !(expected.may_have_no_run && result.reason.empty())) {
      complain(fmt::format("result.json has the reason '{}'", result.reason));
    }
    const std::string name = fmt::format("lrun: note: rank {} ran for ", expected.culprit);
    const bool said = expected.culprit < 0 || lrun_.err().find(name) != std::string::npos;
    const bool lost = result.reason.empty() && expected.may_have_no_run;
    const bool written =
        expected.culprit < 0 || lost ||
        (result.culprit == expected.culprit && result.ending == expected.ending && result.value == expected.value);
    played_.named = ends_right_ && said && written;
  }

  const RunPlan& plan_;
  TemporaryFolder folder_;
  PlayedRun played_;
  LrunProcess lrun_;
  Clock::time_point began_;
  pid_t launcher_ = kNoProcess;
  bool ends_right_ = false;
};

}  // namespace

PlayedRun play(const RunPlan& plan) { return Play(plan).run(); }

}  // namespace lrun::test
