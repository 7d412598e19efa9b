#pragma once

#include <lrun/collectives.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lrun::detail {

/// Makes this rank's end of a subgroup: see Collectives::join_subgroup().
using SubgroupMaker = std::function<std::unique_ptr<Collectives>(const std::vector<int>& ranks, std::uint64_t number)>;

/// The properties of every group: name, rank, size and timeout. Its maker says how its subgroups are made.
class GroupMember : public Collectives {
 public:
  [[nodiscard]] int rank() const final { return rank_; }
  [[nodiscard]] int world_size() const final { return world_size_; }
  [[nodiscard]] std::string name() const final { return name_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const final { return timeout_; }

  void set_subgroup_maker(SubgroupMaker maker) { subgroup_maker_ = std::move(maker); }

 protected:
  GroupMember(std::string name, int rank, int world_size, std::chrono::milliseconds timeout)
      : name_(std::move(name)), rank_(rank), world_size_(world_size), timeout_(timeout) {}

  std::unique_ptr<Collectives> join_subgroup(const std::vector<int>& ranks, std::uint64_t number) final {
    return subgroup_maker_ ? subgroup_maker_(ranks, number) : Collectives::join_subgroup(ranks, number);
  }

  /// The subgroup of another group that this one is made of, or null, as one of this group.
  std::unique_ptr<Collectives> as_own(std::unique_ptr<Collectives> subgroup) const {
    if (subgroup) subgroup->devices_of_rank_ = devices_of_rank();
    return subgroup;
  }

 private:
  const std::string name_;
  const int rank_;
  const int world_size_;
  const std::chrono::milliseconds timeout_;
  SubgroupMaker subgroup_maker_;
};

}  // namespace lrun::detail
