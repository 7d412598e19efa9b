#include "runtime/launch/past_launches.h"

#include <lrun/error.h>

#include <exception>
#include <utility>

namespace lrun {
namespace {

using Outcome = PastLaunch::Outcome;

PastLaunch run(const std::function<std::string()>& launch, std::exception_ptr& thrown) {
  try {
    return {Outcome::kReturned, -1, 0, launch()};
  } catch (const WorkersFailed& error) {
    thrown = std::current_exception();
    return {Outcome::kWorkersFailed, error.rank(), error.exit_code(), error.what()};
  } catch (const Unsupported& error) {
    thrown = std::current_exception();
    return {Outcome::kUnsupported, -1, 0, error.what()};
  } catch (const BadEnvironment& error) {
    thrown = std::current_exception();
    return {Outcome::kBadEnvironment, -1, 0, error.what()};
  } catch (const std::exception& error) {
    thrown = std::current_exception();
    return {Outcome::kOtherError, -1, 0, error.what()};
  }
}

}  // namespace

int PastLaunches::history() const {
  if (loss_.empty()) return history_.fd();
  throw Error(
      "ranks of 'ddp_spawn' execute the program again, and what an earlier launch returned could not be kept for "
      "them: " +
      loss_ + "; name a folder with room in TMPDIR, or use 'ddp_fork'");
}

std::string PastLaunches::record(bool keeps, const std::function<std::string()>& launch) {
  std::exception_ptr thrown;
  PastLaunch outcome = run(launch, thrown);
  ++count_;
  if (keeps) keep(outcome);
  if (thrown) std::rethrow_exception(thrown);
  return std::move(outcome.bytes);
}

/// The launch itself went well, or has an error of its own: that it cannot be kept matters to a later one only.
void PastLaunches::keep(const PastLaunch& outcome) {
  if (!loss_.empty()) return;
  try {
    history_.append(outcome);
  } catch (const std::exception& error) {
    loss_ = error.what();
    history_ = LaunchHistory();  // nobody will read it, and it may be what fills the folder
  }
}

std::string PastLaunches::replay(LaunchHistory& history) {
  ++count_;
  PastLaunch launch = history.read_next();
  switch (launch.outcome) {
    case Outcome::kReturned:
      return std::move(launch.bytes);
    case Outcome::kWorkersFailed:
      throw WorkersFailed(launch.bytes, launch.rank, launch.exit_code);
    case Outcome::kUnsupported:
      throw Unsupported(launch.bytes);
    case Outcome::kBadEnvironment:
      throw BadEnvironment(launch.bytes);
    case Outcome::kOtherError:
      break;
  }
  throw Error(launch.bytes);
}

}  // namespace lrun
