#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/environment.h"

namespace lrun::launcher {

/// A warning about a program that would start, and not do what it is meant to: one of MPI, each process of which would
/// be alone, or a batch script of a scheduler. Empty: it is neither. \param head  the beginning of its file
std::string warning_about_head(const std::string& program, std::string_view head, int world_size);

/// The same of a file, whose first MiB is read. Empty where a scheduler or mpirun started lrun, as both may be meant.
std::string warn_of_file(const std::string& program, const std::filesystem::path& file, int world_size,
                         const Environment& environment);

}  // namespace lrun::launcher
