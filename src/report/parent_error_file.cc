#include "report/parent_error_file.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/small_file.h"
#include "report/result_json.h"
#include "verdict/error_file.h"

namespace lrun {
namespace {

std::string write(const std::string& file, std::string_view text) {
  try {
    write_atomically(file, text);
    return {};
  } catch (const std::system_error& error) {
    return fmt::format("{} cannot be followed: {}", kErrorFileVariable, error.what());
  }
}

/// Empty: nobody wants one. An lrun around this one makes the folders of its ranks only when a run has lived for a
/// moment; what fails before that it learns from our stderr.
std::string wanted_at(const Environment& environment) {
  std::string file = environment.get(kErrorFileVariable).value_or("");
  std::error_code error;
  const bool comes_later =
      environment.has("LRUN_RUN_ID") && !std::filesystem::exists(std::filesystem::path(file).parent_path(), error);
  return comes_later ? std::string() : file;
}

}  // namespace

std::string leave_error_file(const Environment& environment, const Verdict& verdict) {
  const std::string file = wanted_at(environment);
  if (file.empty() || !verdict.culprit) return {};
  std::optional<ErrorFile> own;
  if (!verdict.culprit->error_file.empty()) {
    own = parse_error_file(read_small_file(verdict.culprit->error_file, ErrorFile::kMostBytes).value_or(""));
  }
  return write(file, error_file_for_parent(*verdict.culprit, own, verdict.exit_code));
}

std::string leave_error_file(const Environment& environment, std::string_view message) {
  const std::string file = wanted_at(environment);
  if (file.empty()) return {};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return write(file, error_file_of_launcher(message, std::chrono::duration_cast<std::chrono::seconds>(now).count()));
}

}  // namespace lrun
