#include "faults/remains.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <string_view>

#include "base/fd.h"
#include "base/kernel_text.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

namespace fs = std::filesystem;

using Problems = std::vector<std::string>;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
  return entries;
}

bool launcher_was_killed(const RunPlan& plan) {
  return std::any_of(plan.deeds.begin(), plan.deeds.end(), [](const Deed& deed) {
    return deed.target == Deed::Target::kLauncher && deed.signal_number == SIGKILL;
  });
}

bool is_free(const fs::path& lock) {
  const Fd file(::open(lock.c_str(), O_RDWR | O_CLOEXEC));
  return file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

/// In the working directory there is only what the actors wrote, and the logs where they were asked for.
void check_folder(const fs::path& folder, Problems& problems) {
  static constexpr std::array<std::string_view, 10> kOurs{
      "alive", "connection", "tmp", "bad-interpreter", "not-a-program", "logs", "ready.", "files.", "problem.", "core"};
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename();
    const bool ours = std::any_of(kOurs.begin(), kOurs.end(), [&](auto known) { return name.starts_with(known); });
    if (!ours || name.starts_with("core")) problems.push_back("a file is left: " + name);
    if (name.starts_with("problem.")) problems.push_back(name + ": " + text_of(entry));
  }
  for (const fs::path& entry : entries_of(folder / "tmp")) {
    problems.push_back("a temporary file is left: " + entry.filename().string());
  }
}

void check_events(const fs::path& file, Problems& problems) {
  std::ifstream lines(file);
  std::string last;
  for (std::string line; std::getline(lines, line); last = line) {
    if (!nlohmann::json::accept(line)) problems.push_back("events.jsonl has a line that is no JSON: " + line);
  }
  if (last.find("\"run_ended\"") == std::string::npos) problems.push_back("events.jsonl ends with: " + last);
}

void check_run_folder(const fs::path& run, const RunPlan& plan, Problems& problems) {
  const bool killed = launcher_was_killed(plan);
  const bool never_ran = plan.expected.reason == "start_failed";
  const bool began = fs::exists(run / "lock");
  if (!began && !killed && !never_ran) problems.push_back("the run has no lock");
  if (began && !is_free(run / "lock")) problems.push_back("the run's lock is held");
  for (const fs::path& entry : entries_of(run)) {
    const std::string name = entry.filename();
    const bool expected = name == "lock" || name == "events.jsonl" || name == "result.json" ||
                          name.starts_with("attempt_") || (killed && (name == "control.sock" || name == "lock.new"));
    if (!expected) problems.push_back("the run folder holds " + name);
  }
  if (!killed && !never_ran) check_events(run / "events.jsonl", problems);
}

/// All processes below its run's cgroup are gone with the run, and so is the cgroup. If the guard was killed, the
/// launcher removes it last.
void check_cgroup(const fs::path& run, Problems& problems) {
  const std::string own = cgroup_path(text_of("/proc/self/cgroup"), "").value_or("/");
  for (const fs::path mount_point : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    const fs::path cgroup = mount_point / fs::path(own).relative_path() / ("lrun-" + run.filename().string());
    if (!eventually([&] { return !fs::exists(cgroup); })) problems.push_back("a cgroup is left: " + cgroup.string());
  }
}

void check_state(const fs::path& state, const RunPlan& plan, Problems& problems) {
  const auto runs = entries_of(state);
  const bool may_have_none = plan.expected.may_have_no_run || !plan.when_ready || launcher_was_killed(plan);
  if (runs.size() > 1 || (runs.empty() && !may_have_none)) {
    problems.push_back(fmt::format("{} run folders", runs.size()));
  }
  const bool removed = std::any_of(plan.deeds.begin(), plan.deeds.end(),
                                   [](const Deed& deed) { return deed.target == Deed::Target::kRunFolder; });
  for (const fs::path& run : runs) {
    check_cgroup(run, problems);
    if (!removed) check_run_folder(run, plan, problems);
  }
}

/// Rank 0 counts the same in every attempt after the first, which opens some things once for all attempts.
void check_counts(const fs::path& folder, Problems& problems) {
  int first = 0;
  for (int attempt = 1; fs::exists(folder / fmt::format("files.0.{}", attempt)); ++attempt) {
    const int count = std::stoi(text_of(folder / fmt::format("files.0.{}", attempt)));
    if (attempt == 1) first = count;
    if (count > first) {
      problems.push_back(
          fmt::format("the launcher has {} descriptors after {} restarts, {} after one", count, attempt, first));
    }
  }
}

}  // namespace

Result read_result(const fs::path& state) {
  Result result;
  for (const fs::path& run : entries_of(state)) {
    const auto json = nlohmann::json::parse(text_of(run / "result.json"), nullptr, false);
    if (!json.is_object()) continue;
    result.reason = json.value("reason", "");
    result.exit_code = json.value("exit_code", -1);
    const auto culprit = json.find("culprit");
    if (culprit == json.end() || !culprit->is_object()) continue;
    result.culprit = culprit->value("rank", -1);
    result.ending = culprit->value("ending", "");
    result.value = culprit->value("value", -1);
  }
  return result;
}

bool anybody_lives(const fs::path& folder) { return fs::exists(folder / "alive") && !is_free(folder / "alive"); }

Problems problems_in(const fs::path& folder, const fs::path& state, const RunPlan& plan) {
  Problems problems;
  check_folder(folder, problems);
  check_state(state, plan, problems);
  if (plan.counts_descriptors) check_counts(folder, problems);
  return problems;
}

}  // namespace lrun::test
