#include "plan/outer_run.h"

#include <fmt/format.h>

#include "base/whole_number.h"
#include "cluster/outer_launcher.h"

namespace lrun::launcher {

std::string warn_about_outer_run(const LaunchRequest& request, const Environment& environment) {
  if (request.nested || !is_worker(environment)) return {};
  const auto ranks = whole_number<int>(environment.get("WORLD_SIZE").value_or(""));
  if (!ranks || *ranks <= 1 || environment.get("RANK") != "0") return {};
  const auto of_lrun = environment.get("LRUN_RUN_ID");
  const std::string run = of_lrun ? fmt::format("run '{}'", *of_lrun)
                                  : fmt::format("torchrun's '{}'", environment.get("TORCHELASTIC_RUN_ID").value_or(""));
  return fmt::format(
      "rank 0 of {}, which has {} ranks, started this lrun: its workers are a world of their own, and so are those of "
      "any other rank that starts one; '--nested' says that this is intended",
      run, *ranks);
}

}  // namespace lrun::launcher
