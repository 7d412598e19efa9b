#include "runtime/collectives/common/failure.h"

#include <lrun/error.h>

#include <cstddef>
#include <exception>

#include "base/nearest.h"

namespace lrun::detail {
namespace {

constexpr std::size_t kMostNamed = 8;

}  // namespace

void Failure::raise() const {
  switch (kind) {
    case Kind::kTimeout:
      throw CollectiveTimeout(text);
    case Kind::kPeerLost:
      throw PeerLost(text);
    case Kind::kMismatch:
      throw CollectiveMismatch(text);
    case Kind::kOther:
      break;
  }
  throw Error(text);
}

std::optional<Failure> failure_of(const std::exception& error) {
  if (dynamic_cast<const CollectiveTimeout*>(&error) != nullptr) return Failure{Failure::Kind::kTimeout, error.what()};
  if (dynamic_cast<const PeerLost*>(&error) != nullptr) return Failure{Failure::Kind::kPeerLost, error.what()};
  if (dynamic_cast<const CollectiveMismatch*>(&error) != nullptr) {
    return Failure{Failure::Kind::kMismatch, error.what()};
  }
  if (dynamic_cast<const Error*>(&error) != nullptr) return Failure{Failure::Kind::kOther, error.what()};
  return std::nullopt;
}

std::string name_ranks(const std::vector<int>& ranks) {
  std::vector<std::string> numbers;
  for (const int rank : ranks) numbers.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + join_first(numbers, kMostNamed, " and ");
}

}  // namespace lrun::detail
