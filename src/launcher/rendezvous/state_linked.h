#pragma once

#include <string>

namespace lrun::launcher {

class JobContext;

/// What to type where every node was told to leave the endpoint of the job to others.
inline constexpr const char* kServeEndpointHint =
    "'--rdzv-conf is_host=false' needs another node of the job that serves the endpoint: leave it out on that node, or "
    "use '--rdzv-backend static' or '--rdzv-backend etcd'";

/// State of a Job: it is linked to the leader, or connects to where the leader is said to be.
class Linked {
 public:
  explicit Linked(JobContext& context) : context_(context) {}

  void link_joined() {}
  void link_broken(const std::string& why, const std::string& hint);

 private:
  JobContext& context_;
};

/// State of a Job: it is over for this launcher. What is served here goes on for the others.
class Over {
 public:
  explicit Over(JobContext& /*context*/) {}

  void link_joined() {}
  void link_broken(const std::string& /*why*/, const std::string& /*hint*/) {}
};

}  // namespace lrun::launcher
