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

std::string PastLaunches::record(bool keeps, const std::function<std::string()>& launch) {
  std::exception_ptr thrown;
  PastLaunch outcome = run(launch, thrown);
  ++count_;
  std::string returned = thrown ? std::string() : outcome.bytes;
  if (keeps) launches_.push_back(std::move(outcome));
  if (thrown) std::rethrow_exception(thrown);
  return returned;
}

std::string PastLaunches::replay(const std::vector<PastLaunch>& launches) {
  const PastLaunch& launch = launches.at(static_cast<std::size_t>(count_++));
  switch (launch.outcome) {
    case Outcome::kReturned:
      return launch.bytes;
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
