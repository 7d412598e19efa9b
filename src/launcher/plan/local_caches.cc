// Where the caches of Python's compilers lie on a network file system, workers get variables that lead to a folder of
// their node. make_plan() and questions_of() call it.
#include "plan/local_caches.h"

#include <algorithm>
#include <string_view>

#include "base/sha256.h"
#include "plan/environment_change.h"

namespace lrun::launcher {
namespace {

struct Cache {
  std::string_view variable;
  std::string default_folder;  ///< empty: unknown
  std::string_view name;       ///< below the folder of the node
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
      {"TORCH_EXTENSIONS_DIR", cache + "/torch_extensions", "torch_extensions"},
      {"CUDA_CACHE_PATH", home + "/.nv/ComputeCache", "cuda"},
      {"NUMBA_CACHE_DIR", cache + "/numba", "numba"},
  };
  std::erase_if(caches, [&](const Cache& one) {
    return environment.has(one.variable) || (one.variable == "TRITON_CACHE_DIR" && environment.has("TRITON_HOME"));
  });
  return caches;
}

/// Extensions of one Python cannot be loaded by another.
std::string name_of_interpreter(const LaunchPlan& plan) {
  constexpr std::size_t kBytes = 4;
  const std::string& path = plan.python && !plan.python->path.empty() ? plan.python->path : plan.argv.front();
  return in_hexadecimal(sha256(path).substr(0, kBytes));
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
  if (here.local_folder.empty()) return;
  const std::string folder = here.local_folder + "/" + name_of_interpreter(plan);
  for (const Cache& cache : caches_without_place(changed(environment, plan.setup.environment))) {
    const auto found = here.network_folders.find(cache.default_folder);
    if (found == here.network_folders.end()) continue;
    plan.cache_folder = here.local_folder;
    add_change(plan.setup.environment,
               {EnvironmentChange::Kind::kSet, std::string(cache.variable), folder + "/" + std::string(cache.name),
                Source::kDefault, "its default is on " + found->second});
  }
}

}  // namespace lrun::launcher
