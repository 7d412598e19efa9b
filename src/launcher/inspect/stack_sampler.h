#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_query.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "inspect/rank_process.h"
#include "inspect/stack_sample.h"
#include "process/tool_run.h"

namespace lrun::launcher {

/// The programs that read stacks; the path of each, or empty where it is not installed.
struct StackTools {
  std::string eu_stack;
  std::string gdb;
  std::string py_spy;

  bool operator==(const StackTools&) const = default;
};

/// \param search_path  the value of PATH
StackTools find_stack_tools(std::string_view search_path);

/// Looks at processes: /proc at once, then stacks with the tools, a few processes at a time.
///
/// Python's stacks are read in the memory of the processes, all of them at once, before anything disturbs them; py-spy
/// is asked where that is refused. Native stacks come from look_at_native() in a child, and from eu-stack, else gdb,
/// where that is refused or cut off. A child and a tool stop their process for the moment of their look, have a
/// deadline, and are ended by their pid; a process that a tool left stopped is continued. A missing stack is explained
/// in `problems`. One thread.
class StackSampler {
 public:
  struct Limits {
    Duration tool = std::chrono::seconds(25);  ///< gdb needs 14 s of a core to read LibTorch's symbols
    Duration all = std::chrono::seconds(30);
    std::size_t at_once = 4;
    bool native_too = true;     ///< also where Python's stack is known: a debugger reads large libraries for seconds
    bool reads_natives = true;  ///< without a tool, too, which stops each process for a moment
  };
  using Done = std::function<void(std::vector<StackSample> samples)>;

  /// `done` is called once, by the loop.
  StackSampler(EventLoop& loop, StackTools tools, const std::vector<RankProcess>& processes, Limits limits, Done done);
  StackSampler(const StackSampler&) = delete;
  StackSampler& operator=(const StackSampler&) = delete;
  ~StackSampler() = default;

 private:
  struct Job {
    StackSample sample;
    std::unique_ptr<ToolRun> tool;
    std::unique_ptr<ChildQuery> native_look;
    std::string native_problem;  ///< why that gave no whole stack
  };

  void begin_more();
  void python_stack(Job& job);
  bool python_done(Job& job, const ToolOutcome& outcome);
  void native_stack(Job& job);
  void native_seen(Job& job, const ChildAnswer& answer);
  void native_stack_by_tool(Job& job);
  bool native_done(Job& job, const ToolOutcome& outcome);
  void job_done(Job& job);
  /// `then` returns whether the tool has said something, or why not is told already.
  void ask(Job& job, std::vector<std::string> argv, bool (StackSampler::*then)(Job&, const ToolOutcome&));
  [[nodiscard]] Duration time_left() const;

  EventLoop& loop_;
  StackTools tools_;
  Limits limits_;
  Done done_;
  SteadyTime end_;
  std::vector<std::string> environment_;
  std::list<Job> jobs_;       ///< all of them
  std::deque<Job*> waiting_;  ///< not begun
  std::size_t running_ = 0;
  EventLoop::Timer next_;
};

/// How much a look may cost the ranks.
enum class LookKind {
  kFull,         ///< all stacks
  kBrief,        ///< no native stack where Python's is known
  kUndisturbed,  ///< no tool: what can be read while nothing is stopped
};

/// `lrun stack --pids …` as a child of the launcher, whose one thread must not wait for debuggers: to be given to a
/// ToolRun, whose output is then JSON. Ends within 35 seconds, a look that is not full within 5.
ToolRequest stack_request(const std::vector<RankProcess>& processes, LookKind kind);

}  // namespace lrun::launcher
