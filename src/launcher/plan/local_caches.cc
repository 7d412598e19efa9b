// Where the caches of Python's compilers lie on a network file system, workers get variables that lead to a folder of
// their node. make_plan() and questions_of() call it.
#include "plan/local_caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "plan/environment_change.h"

namespace lrun::launcher {
namespace {

struct Cache {
  std::string_view variable;
  std::string default_folder;
  std::string_view name;  ///< below the folder of the node
};

std::string text_of_variable(const Environment& environment, std::string_view name, const std::string& otherwise) {
  const std::string text = environment.get(name).value_or("");
  return text.empty() ? otherwise : text;
}

/// As the documents and sources of triton 3.7, torch 2.11, CUDA 13 and numba 0.62 have it.
std::vector<Cache> caches_without_place(const Environment& environment) {
  const std::string home = environment.get("HOME").value_or("");
  if (home.empty()) return {};
  const std::string cache = text_of_variable(environment, "XDG_CACHE_HOME", home + "/.cache");
  std::vector<Cache> caches = {
      {"TRITON_CACHE_DIR", home + "/.triton/cache", "triton"},
      {"TORCHINDUCTOR_CACHE_DIR", text_of_variable(environment, "TMPDIR", "/tmp"), "torchinductor"},
      {"CUDA_CACHE_PATH", home + "/.nv/ComputeCache", "cuda"},
      {"NUMBA_CACHE_DIR", cache + "/numba", "numba"},
  };
  std::erase_if(caches, [&](const Cache& one) {
    return environment.has(one.variable) || (one.variable == "TRITON_CACHE_DIR" && environment.has("TRITON_HOME"));
  });
  return caches;
}

}  // namespace

std::vector<std::string> cache_folders(const LaunchRequest& request, const Environment& environment) {
  std::vector<std::string> folders;
  if (request.compat != Compat::kLrun) return folders;
  for (Cache& cache : caches_without_place(changed(environment, request.setup.environment))) {
    folders.push_back(std::move(cache.default_folder));
  }
  return folders;
}

void keep_caches_on_node(const Environment& environment, const AllocatedNode& here, LaunchPlan& plan) {
  for (const Cache& cache : caches_without_place(changed(environment, plan.setup.environment))) {
    const auto found = here.network_folders.find(cache.default_folder);
    if (found == here.network_folders.end()) continue;
    if (here.local_folder.empty()) {
      plan.warnings.push_back(
          fmt::format("caches of workers stay on {}, where ranks of other nodes may disturb each other: {}",
                      found->second, here.local_folder_problem));
      return;
    }
    plan.cache_folder = here.local_folder;
    add_change(plan.setup.environment, {EnvironmentChange::Kind::kSet, std::string(cache.variable),
                                        here.local_folder + "/" + std::string(cache.name), Source::kDefault,
                                        "its default is on " + found->second});
  }
}

}  // namespace lrun::launcher
