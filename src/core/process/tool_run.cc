#include "process/tool_run.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

namespace lrun::inline core {
namespace {

constexpr Duration kToObey(1000);

void keep(std::string& text, std::string_view bytes, std::size_t most) {
  text.append(bytes.substr(0, most - std::min(most, text.size())));
}

}  // namespace

ToolRun::ToolRun(EventLoop& loop, ToolRequest request, Done done)
    : loop_(loop), most_bytes_(request.most_bytes), done_(std::move(done)) {
  const Duration limit = request.limit;
  try {
    start(std::move(request));
    timer_ = loop_.after(limit, [this] { out_of_time(); });
  } catch (const std::system_error& error) {
    outcome_.error_number = error.code().value();
    timer_ = loop_.after(Duration::zero(), [this] { finish(); });
  }
}

void ToolRun::start(ToolRequest request) {
  HelperRequest helper{.path = request.argv.front(),
                       .argv = std::move(request.argv),
                       .environment = std::move(request.environment),
                       .ends_its_group = true,
                       .left_pipes = Duration(200)};
  // lrun ignores these two for itself.
  helper.defaults.pipe_signal_ignored = false;
  helper.defaults.file_size_signal_ignored = false;
  program_.emplace(loop_, helper,
                   HelperProgram::Events{
                       .output = [this](std::string_view bytes) { keep(outcome_.output, bytes, most_bytes_); },
                       .errors = [this](std::string_view bytes) { keep(outcome_.errors, bytes, most_bytes_); },
                       .ended =
                           [this](std::optional<ExitStatus> status) {
                             outcome_.status = status;
                             finish();
                           },
                   });
}

void ToolRun::out_of_time() {
  if (program_->has_ended()) return;  // in time; only its pipes are still read
  if (!std::exchange(outcome_.timed_out, true)) {
    program_->signal(SIGTERM);  // a debugger lets go of its process then
    timer_ = loop_.after(kToObey, [this] { out_of_time(); });
    return;
  }
  program_->signal_group(SIGKILL);
  // The kernel may keep it in a read of a file system that hangs.
  timer_ = loop_.after(kToObey, [this] { finish(); });
}

void ToolRun::finish() {
  timer_.cancel();
  // A tool that could not be killed in time may end later.
  if (const Done done = std::exchange(done_, nullptr)) done(std::move(outcome_));  // may destroy this object
}

std::vector<std::string> environment_without(const std::vector<std::string>& names) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (std::find(names.begin(), names.end(), text.substr(0, text.find('='))) == names.end()) {
      environment.emplace_back(text);
    }
  }
  return environment;
}

}  // namespace lrun::inline core
