#pragma once

#include <lrun/session.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/support/thread_ranks.h"

namespace lrun::test {

/// Stands for a launcher's work: the processes of a strategy are threads here, its devices are CPUs.
struct Layout {
  std::string strategy = "dp";
  int devices = 2;  ///< of a node
  int nodes = 1;

  [[nodiscard]] bool one_process_a_device() const { return strategy != "dp" && strategy != "ddp2"; }
  [[nodiscard]] int processes_of_a_node() const { return one_process_a_device() ? devices : 1; }
  [[nodiscard]] int world_size() const { return nodes * processes_of_a_node(); }
};

inline SessionOptions options_of(const Layout& layout, int rank) {
  SessionOptions options;
  options.banner = false;
  options.strategy = layout.strategy;
  options.gradients = {.bucket_bytes = 1024, .first_bucket_bytes = 512};  // several, made anew after the first step
  const auto devices = static_cast<std::size_t>(layout.one_process_a_device() ? 1 : layout.devices);
  options.devices = std::vector<std::string>(devices, "cpu");
  options.world.emplace();
  options.world->rank = rank;
  options.world->world_size = layout.world_size();
  options.world->local_world_size = layout.processes_of_a_node();
  options.world->local_rank = rank % layout.processes_of_a_node();
  options.world->node_rank = rank / layout.processes_of_a_node();
  options.world->nodes = layout.nodes;
  return options;
}

/// Runs `body` with a session as every process of the layout.
inline void run_layout(const Layout& layout, const std::function<void(Session&)>& body) {
  rethrow_first(run_owning_ranks(layout.world_size(), [&](int rank, std::unique_ptr<Collectives> collectives) {
    SessionOptions options = options_of(layout, rank);
    options.connect = [&](const World&) { return std::move(collectives); };
    Session session(std::move(options));
    body(session);
  }));
}

}  // namespace lrun::test
