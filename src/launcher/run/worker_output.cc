// In: the plan for the streams of each worker. Out: the descriptors that a worker starts with, and the streams that the
// log router reads. Attempt owns it; WorkerStarter calls prepare().
#include "run/worker_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/console_descriptor.h"
#include "base/message.h"
#include "logs/rank_prefix.h"
#include "process/pty.h"

namespace lrun::launcher {
namespace {

using Way = StreamRoute::Way;

Fd open_null() {
  Fd fd(::open("/dev/null", O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) throw std::system_error(errno, std::generic_category(), "open '/dev/null'");
  return fd;
}

}  // namespace

WorkerOutput::WorkerOutput(const LaunchPlan& plan, const NodePlan& node, const AttemptFiles& files)
    : plan_(plan), node_(node), files_(files) {}

int WorkerOutput::keep(Fd fd) {
  open_.push_back(std::move(fd));
  return open_.back().get();
}

int WorkerOutput::terminal_for(const WorkerPlan& worker, LogStream stream) {
  constexpr int kFewest = 20;
  const int prefix = plan_.output.console.value == ConsoleMode::kPrefix ? rank_width(plan_.world_size) + 3 : 0;
  Pty pty = make_pty(std::max(kFewest, ConsoleDescriptor(STDOUT_FILENO).size().columns - prefix));
  terminals_[{worker.local_rank, stream}] = std::move(pty.ours);
  return keep(std::move(pty.programs));
}

int WorkerOutput::descriptor_for(const WorkerPlan& worker, LogStream stream) {
  switch (route_of(plan_.output, worker, stream).way) {
    case Way::kCaptured:
      return plan_.output.pty ? terminal_for(worker, stream) : -1;
    case Way::kInherited:
      return stream == LogStream::kOut ? STDOUT_FILENO : STDERR_FILENO;
    case Way::kNowhere:
      if (!null_) null_ = open_null();
      return null_.get();
    case Way::kTerminal:
      return relay_->programs_end();
    case Way::kFile:
      break;
  }
  return keep(files_.open_stream(worker.local_rank, stream));
}

void WorkerOutput::prepare(std::span<WorkerCommand> commands, std::size_t first) {
  for (WorkerCommand& command : commands) {
    const WorkerPlan& worker = node_.workers[first++];
    if (plan_.standard_input && worker.rank == 0) command.standard_input = STDIN_FILENO;
    if (worker.rank == plan_.output.rank_on_terminal) {
      command.standard_input = relay_.emplace().programs_end();
      command.own_terminal = true;
    }
    command.standard_output = descriptor_for(worker, LogStream::kOut);
    command.standard_error = descriptor_for(worker, LogStream::kErr);
  }
}

void WorkerOutput::end_start(LogRouter& logs, EventLoop& loop, std::function<void()> terminal_left) {
  null_.reset();
  if (!relay_) return;
  relay_->begin(loop,
                {[&logs](const OtherProgressLine& line) { logs.set_other_progress_line(line.open(), line.drawing()); },
                 std::move(terminal_left)});
}

void WorkerOutput::adopt_streams(std::vector<Worker>& workers, LogRouter& logs) {
  for (; adopted_ < workers.size(); ++adopted_) {
    Worker& worker = workers[adopted_];
    for (const LogStream stream : kLogStreams) {
      const StreamRoute route = route_of(plan_.output, node_.workers[adopted_], stream);
      Fd& pipe = stream == LogStream::kOut ? worker.standard_output : worker.standard_error;
      Fd& read_end = plan_.output.pty && !pipe ? terminals_[{worker.local_rank, stream}] : pipe;
      if (route.way == Way::kCaptured) {
        logs.add_stream(worker.rank, worker.local_rank, stream, std::move(read_end),
                        {route.file, route.console, route.prefix});
      } else if (route.way == Way::kFile) {
        logs.add_file(worker.local_rank, stream, files_.path_of(worker.local_rank, stream));
      }
    }
  }
}

bool WorkerOutput::workers_write_files(const OutputPlan& output, const NodePlan& node) {
  return std::any_of(node.workers.begin(), node.workers.end(), [&](const WorkerPlan& worker) {
    return std::any_of(std::begin(kLogStreams), std::end(kLogStreams),
                       [&](LogStream stream) { return route_of(output, worker, stream).way == Way::kFile; });
  });
}

LogOptions log_options(const LaunchPlan& plan) {
  const OutputPlan& output = plan.output;
  return {.prefix = output.console.value == ConsoleMode::kPrefix || output.console.value == ConsoleMode::kFold,
          .fold = output.console.value == ConsoleMode::kFold,
          .timestamps = output.timestamps,
          .interactive = plan.standard_input,
          .one_rank = output.console.value == ConsoleMode::kRank0 ||
                      (output.console.value == ConsoleMode::kRaw && plan.world_size == 1),
          .live = output.rank_on_terminal < 0,
          .prefix_template = output.prefix_template,
          .role = plan.role,
          .host = plan.nodes.front().name,
          .rank_width = rank_width(plan.world_size),
          .colour = wants_colour(),
          .files = output.files,
          .stdout_filters = output.stdout_filters,
          .stderr_filters = output.stderr_filters,
          .max_file_bytes = output.max_file_bytes};
}

}  // namespace lrun::launcher
