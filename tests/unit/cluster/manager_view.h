#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/environment.h"
#include "base/user_error.h"
#include "cluster/managed_job.h"

namespace lrun::launcher {

/// The machine of the tests of managers: variables, a host's name, and files that exist only here.
class FakeNode {
 public:
  FakeNode(std::initializer_list<std::pair<const std::string, std::string>> variables)
      : environment_(std::map<std::string, std::string, std::less<>>(variables)) {}

  FakeNode& with(const std::string& name, const std::string& value) {
    environment_.set(name, value);
    return *this;
  }
  FakeNode& without(const std::string& name) {
    environment_.unset(name);
    return *this;
  }
  FakeNode& with_file(const std::string& path, const std::string& text) {
    files_[path] = text;
    return *this;
  }

  FakeNode& with_pmi_proxy(int pid) {
    pmi_proxy_ = pid;
    return *this;
  }

  [[nodiscard]] ManagerView view() const {
    return {environment_, "here",
            [this](const std::string& path) {
              const auto found = files_.find(path);
              return found == files_.end() ? std::string() : found->second;
            },
            pmi_proxy_};
  }
  [[nodiscard]] std::optional<ManagedJob> job() const { return find_managed_job(view()); }

  /// The refusal of find_managed_job().
  [[nodiscard]] std::string refusal() const {
    try {
      (void)job();
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  }

 private:
  Environment environment_;
  std::map<std::string, std::string> files_;
  std::optional<int> pmi_proxy_;
};

/// 'Open MPI: node 1 of 2 at h1:29500', '?' for unknown values.
inline std::string text_of(const std::optional<ManagedJob>& job) {
  if (!job) return "none";
  const auto number = [](const Reported<int>& told) { return told.known() ? std::to_string(told.value) : "?"; };
  return job->manager + ": node " + number(job->node_rank) + " of " + number(job->nodes) + " at " +
         (job->host.known() ? job->host.value : "?") + ":" + number(job->port);
}

}  // namespace lrun::launcher
