// In: processes of ranks, and the debuggers on PATH. Out: their stacks, or why there are none. Called by `lrun stack`,
// which the launcher starts as a helper of its own.
#include "inspect/stack_sampler.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/signal_names.h"
#include "base/split.h"
#include "inspect/native_look.h"
#include "inspect/process_look.h"
#include "inspect/python_look.h"
#include "inspect/stack_parsers.h"
#include "process/program_path.h"

namespace lrun::launcher {
namespace {

constexpr Duration kNativeLimit(2000);
constexpr const char* kUndisturbed = "no native stack: nothing is stopped for this look";

std::string tool_path(std::string_view name, std::string_view search_path) {
  ProgramPath found = find_program(name, search_path);
  return found.error_number == 0 ? std::move(found.path) : std::string();
}

/// Why a tool gave no stack.
std::string problem_of(const std::string& tool, const ToolOutcome& outcome, Duration limit) {
  const std::string name = tool.substr(tool.rfind('/') + 1);
  if (outcome.timed_out) {
    return fmt::format("{} took longer than {}{}", name, format_duration(limit),
                       name == "gdb" ? "; eu-stack (package elfutils) is faster with large libraries" : "");
  }
  if (outcome.error_number != 0) return fmt::format("{} cannot be run", name);
  const bool refused = (outcome.errors + outcome.output).find("not permitted") != std::string::npos;
  const std::string yama = refused ? yama_refusal() : "";
  if (!yama.empty()) return fmt::format("{} is not permitted to attach: {}", name, yama);
  const std::string line(last_line_of(outcome.errors.empty() ? outcome.output : outcome.errors).substr(0, 200));
  return fmt::format("{}: {}", name, line.empty() ? "found no stack" : line);
}

/// gdb without its start-up files and downloads.
std::vector<std::string> gdb_arguments(const std::string& gdb, pid_t pid) {
  return {gdb,
          "-nx",
          "-batch",
          "-iex",
          "set debuginfod enabled off",
          "-iex",
          "set auto-load no",
          "-iex",
          "set print frame-arguments none",
          "-p",
          std::to_string(pid),
          "-ex",
          "bt 64"};
}

/// Where the child of a shell ends at this moment, the shell is what is left to look at.
StackSample look_at_rank(pid_t pid) {
  const StackSample at_work = look_at_process(working_process(pid));
  return at_work.has_ended() ? look_at_process(pid) : at_work;
}

/// In a child that reads what may have been made up: names may grow without an end, and a file may be cut off.
void limit_damage() {
  constexpr rlim_t kMostBytes = rlim_t{1} << 30U;
  std::ifstream pages("/proc/self/statm");
  rlim_t data = 0;  // the sixth number
  for (int i = 0; i < 6; ++i) pages >> data;
  const rlim_t most = data * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kMostBytes;
  const rlimit memory{most, most};
  ::setrlimit(RLIMIT_DATA, &memory);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

void read_python(StackSample& sample) {
  PythonLook look = look_at_python(sample.pid);
  if (!look.threads.empty()) {
    sample.python = std::move(look.threads.front().frames);
    sample.other_threads.assign(look.threads.begin() + 1, look.threads.end());
  }
  if (!look.problem.empty()) sample.problems.push_back(std::move(look.problem));
}

}  // namespace

StackTools find_stack_tools(std::string_view search_path) {
  return {tool_path("eu-stack", search_path), tool_path("gdb", search_path), tool_path("py-spy", search_path)};
}

ToolRequest stack_request(const std::vector<RankProcess>& processes, LookKind kind) {
  std::string list;
  for (const RankProcess& process : processes) {
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", process.rank, process.pid);
  }
  std::vector<std::string> argv{"/proc/self/exe", "stack", "--json", "--pids", std::move(list)};
  const bool full = kind == LookKind::kFull;
  if (!full) argv.emplace_back("--brief");
  constexpr std::size_t kMostBytes = std::size_t{64} << 20U;  // of some thousand ranks
  // torchrun has no verbs: the run's LRUN_COMPAT is not for this one.
  std::vector<std::string> left_out{"LRUN_COMPAT"};
  if (kind == LookKind::kUndisturbed) left_out.emplace_back("PATH");  // where the tools are
  return {std::move(argv), environment_without(left_out), full ? Duration(35'000) : Duration(5000), kMostBytes};
}

StackSampler::StackSampler(EventLoop& loop, StackTools tools, const std::vector<RankProcess>& processes, Limits limits,
                           Done done)
    : loop_(loop),
      tools_(std::move(tools)),
      limits_(limits),
      done_(std::move(done)),
      end_(std::chrono::steady_clock::now() + limits.all),
      environment_(environment_without({"DEBUGINFOD_URLS"})) {  // stacks are not worth the network
  for (const RankProcess& process : processes) {
    Job& job = jobs_.emplace_back();
    job.sample = look_at_rank(process.pid);
    job.sample.rank = process.rank;
    if (!job.sample.has_ended()) read_python(job.sample);
    waiting_.push_back(&job);
  }
  next_ = loop_.after(Duration::zero(), [this] { begin_more(); });
}

Duration StackSampler::time_left() const {
  return std::chrono::duration_cast<Duration>(end_ - std::chrono::steady_clock::now());
}

void StackSampler::begin_more() {
  while (running_ < limits_.at_once && !waiting_.empty()) {
    Job* const job = waiting_.front();
    waiting_.pop_front();
    ++running_;
    python_stack(*job);
  }
  if (running_ > 0 || !waiting_.empty() || !done_) return;
  std::vector<StackSample> samples;
  for (Job& job : jobs_) samples.push_back(std::move(job.sample));
  std::exchange(done_, nullptr)(std::move(samples));
}

void StackSampler::ask(Job& job, std::vector<std::string> argv, bool (StackSampler::*then)(Job&, const ToolOutcome&)) {
  const std::string name = argv.front();
  const Duration limit = std::min(limits_.tool, time_left());
  ToolRequest request{std::move(argv), environment_, limit};
  job.tool =
      std::make_unique<ToolRun>(loop_, std::move(request), [this, &job, then, name, limit](const ToolOutcome& outcome) {
        const bool is_explained = (this->*then)(job, outcome);
        if (!is_explained && job.sample.state != 0) job.sample.problems.push_back(problem_of(name, outcome, limit));
      });
}

/// py-spy knows more versions of Python than we do.
void StackSampler::python_stack(Job& job) {
  if (!job.sample.python.empty() && !limits_.native_too) return job_done(job);
  if (job.sample.problems.empty() || tools_.py_spy.empty() || time_left() <= Duration::zero()) return native_stack(job);
  ask(job, {tools_.py_spy, "dump", "--pid", std::to_string(job.sample.pid)}, &StackSampler::python_done);
}

bool StackSampler::python_done(Job& job, const ToolOutcome& outcome) {
  job.sample.python = parse_py_spy(outcome.output);
  const bool says_more = !job.sample.python.empty();
  if (says_more) job.sample.problems.clear();
  if (says_more && !limits_.native_too) {
    job_done(job);
  } else {
    native_stack(job);
  }
  return says_more;
}

void StackSampler::native_stack(Job& job) {
  if (job.sample.has_ended()) return job_done(job);
  if (time_left() <= Duration::zero()) {
    job.sample.problems.emplace_back("no time was left for its stack");
    return job_done(job);
  }
  if (!limits_.reads_natives) return native_stack_by_tool(job);
  job.native_look = std::make_unique<ChildQuery>(
      loop_,
      [pid = job.sample.pid] {
        limit_damage();
        return to_text(look_at_native(pid));
      },
      std::min(kNativeLimit, time_left()), [this, &job](const ChildAnswer& answer) { native_seen(job, answer); });
}

void StackSampler::native_seen(Job& job, const ChildAnswer& answer) {
  using End = ChildAnswer::End;
  NativeLook look = native_look_from(answer.text);
  if (answer.end == End::kTimedOut) {
    look.problem = "no native stack: it could not be read in time";
  } else if (answer.end == End::kNotStarted) {
    look.problem = fmt::format("no native stack: no process can be started: {}", std::strerror(answer.error_number));
  } else if (answer.end == End::kCrashed) {
    look.problem = fmt::format("no native stack: reading it ended with {}",
                               answer.signal_number != 0 ? signal_name(answer.signal_number) : "an error");
  }
  job.sample.native = std::move(look.frames);
  job.native_problem = std::move(look.problem);
  if (job.native_problem.empty()) return job_done(job);
  native_stack_by_tool(job);
}

void StackSampler::native_stack_by_tool(Job& job) {
  const std::string pid = std::to_string(job.sample.pid);
  if (time_left() > Duration::zero()) {
    if (!tools_.eu_stack.empty()) {
      return ask(job, {tools_.eu_stack, "-1", "-m", "-n", "64", "-p", pid}, &StackSampler::native_done);
    }
    // Python's stack says the most, and gdb takes long.
    if (job.sample.python.empty() && !tools_.gdb.empty()) {
      return ask(job, gdb_arguments(tools_.gdb, job.sample.pid), &StackSampler::native_done);
    }
  }
  job.sample.problems.push_back(job.native_problem.empty() ? kUndisturbed : job.native_problem);
  job_done(job);
}

bool StackSampler::native_done(Job& job, const ToolOutcome& outcome) {
  auto frames = tools_.eu_stack.empty() ? parse_gdb_backtrace(outcome.output) : parse_eu_stack(outcome.output);
  const bool says_more = frames.size() > job.sample.native.size();
  if (says_more) {
    job.sample.native = std::move(frames);
  } else if (!job.native_problem.empty()) {
    job.sample.problems.push_back(job.native_problem);  // the tool's own is the same, or of less use
  }
  job_done(job);
  return says_more || !job.native_problem.empty();
}

void StackSampler::job_done(Job& job) {
  // A debugger that was killed at the wrong moment leaves its process stopped.
  if (job.tool && !job.sample.has_ended() && job.sample.state != 'T' && look_at_process(job.sample.pid).state == 'T') {
    ::kill(job.sample.pid, SIGCONT);
  }
  --running_;
  next_ = loop_.after(Duration::zero(), [this] { begin_more(); });
}

}  // namespace lrun::launcher
