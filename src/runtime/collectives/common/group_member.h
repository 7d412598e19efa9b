#pragma once

#include <lrun/collectives.h>

#include <chrono>
#include <string>
#include <utility>

namespace lrun::detail {

/// The properties of every group: name, rank, size and timeout.
class GroupMember : public Collectives {
 public:
  [[nodiscard]] int rank() const final { return rank_; }
  [[nodiscard]] int world_size() const final { return world_size_; }
  [[nodiscard]] std::string name() const final { return name_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const final { return timeout_; }

 protected:
  GroupMember(std::string name, int rank, int world_size, std::chrono::milliseconds timeout)
      : name_(std::move(name)), rank_(rank), world_size_(world_size), timeout_(timeout) {}

 private:
  const std::string name_;
  const int rank_;
  const int world_size_;
  const std::chrono::milliseconds timeout_;
};

}  // namespace lrun::detail
