// In: the file of PROGRAM. Out: a warning about it. launch() calls it before workers start.
#include "run/program_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/small_file.h"
#include "cluster/mpi_job.h"

namespace lrun::launcher {
namespace {

/// 'libmpi.so.40'. Linkers put the names of the libraries that a program needs at its beginning, each between two
/// zeros, and those of MPI have a version. A text of the program's own, such as a list of names, has none.
std::string library_of_mpi(std::string_view head) {
  if (!head.starts_with(ELFMAG)) return {};
  for (const char* const name : {"libmpi.so.", "libmpich.so.", "libmpi_cxx.so."}) {
    const std::size_t at = head.find('\0' + std::string(name));
    if (at != std::string_view::npos) return std::string(head.substr(at + 1, head.find('\0', at + 1) - at - 1));
  }
  return {};
}

bool is_batch_script(std::string_view head) {
  constexpr std::array<std::string_view, 3> kDirectives{"\n#SBATCH ", "\n#PBS ", "\n#BSUB "};
  return head.starts_with("#!") && std::ranges::any_of(kDirectives, [&](std::string_view directive) {
           return head.find(directive) != std::string_view::npos;
         });
}

/// Most programs are told by their first bytes to need no more of a look.
std::string head_of(const std::filesystem::path& file, int world_size) {
  constexpr std::size_t kFew = 4;
  constexpr std::size_t kMost = std::size_t{1} << 20;
  const std::string begin = read_file_head(file, kFew);
  const bool may_matter = begin.starts_with("#!") || (world_size > 1 && begin == ELFMAG);
  return may_matter ? read_file_head(file, kMost) : std::string();
}

}  // namespace

std::string warning_about_head(const std::string& program, std::string_view head, int world_size) {
  if (is_batch_script(head)) {
    return fmt::format("'{0}' is a batch script: 'sbatch {0}' submits it, and lrun stands in it in the place of srun",
                       program);
  }
  const std::string library = world_size > 1 ? library_of_mpi(head) : std::string();
  if (library.empty()) return {};
  return fmt::format(
      "'{}' uses MPI ({}), which lrun does not start: each worker is rank 0 of 1; write 'mpirun -np {} {}'", program,
      library.substr(0, 40), world_size, program);
}

std::string warn_of_file(const std::string& program, const std::filesystem::path& file, int world_size,
                         const Environment& environment) {
  constexpr std::array<const char*, 3> kOfJobs{"SLURM_JOB_ID", "PBS_JOBID", "PMIX_RANK"};
  const bool is_managed = !variable_of_mpi_tasks(environment).empty() ||
                          std::ranges::any_of(kOfJobs, [&](const char* name) { return environment.has(name); });
  return is_managed ? std::string() : warning_about_head(program, head_of(file, world_size), world_size);
}

}  // namespace lrun::launcher
