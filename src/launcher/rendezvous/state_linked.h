#pragma once

#include <string>

namespace lrun::launcher {

class JobContext;

/// A hint where every node leaves the endpoint of the job to the others.
inline constexpr const char* kServeEndpointHint =
    "'--rdzv-conf is_host=false' needs another node of the job that serves the endpoint: leave it out on that node, or "
    "use '--rdzv-backend static' or '--rdzv-backend etcd'";

/// State of a Job: it is linked to the leader, or connects to the place where the leader has to be.
class Linked {
 public:
  explicit Linked(JobContext& context) : context_(context) {}

  void link_joined() {}
  void link_broken(const std::string& why, const std::string& hint);

 private:
  JobContext& context_;
};

/// State of a Job: it is over for this launcher. A rendezvous that is served here goes on for the others.
class Over {
 public:
  explicit Over(JobContext& /*context*/) {}

  void link_joined() {}
  void link_broken(const std::string& /*why*/, const std::string& /*hint*/) {}
};

}  // namespace lrun::launcher
