#include "report/parent_error_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/appended_file.h"
#include "base/folder.h"
#include "base/replaced_file.h"
#include "base/small_file.h"
#include "verdict/error_file.h"

namespace lrun::launcher {
namespace {

/// Writes into an existing file that cannot be replaced, as one that is mounted into a container.
/// \return 0, or the errno of the machine's refusal.
int write_over(const Folder& folder, const std::string& name, std::string_view text) {
  const Fd file(::openat(folder.fd(), name.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) return errno;
  if (!S_ISREG(facts.st_mode)) return ENXIO;
  if (::ftruncate(file.get(), 0) != 0) return errno;
  return write_all(file.get(), text);
}

/// \return 0, or the errno of the machine's refusal.
int write_whole(const std::filesystem::path& file, std::string_view text) {
  constexpr mode_t kMode = 0666;  // as torch's
  const Folder folder = Folder::open(file.has_parent_path() ? file.parent_path() : ".");
  const int error = replace_file(folder, file.filename().string(), text, kMode);
  const bool stays = error == EBUSY || error == EACCES || error == EPERM || error == EROFS;
  if (!stays) return error;
  const int error_there = write_over(folder, file.filename().string(), text);
  return error_there == ENOENT ? error : error_there;
}

void write(const std::string& file, std::string_view text, MessageSink& sink) {
  std::string why;
  try {
    const int error = write_whole(file, text);
    if (error == 0) return;
    why = fmt::format("'{}': {}", file, file_refusal_text(error));
  } catch (const std::system_error& error) {
    why = error.what();
  }
  sink.warn(fmt::format("{} cannot be followed: {}", kErrorFileVariable, why));
}

/// The path of the error file; empty: not wanted. An lrun around this one makes its folders only when a run has lived
/// for a moment; it learns of earlier failures from our stderr.
std::string wanted_at(const Environment& environment) {
  std::string file = environment.get(kErrorFileVariable).value_or("");
  std::error_code error;
  const bool comes_later =
      environment.has("LRUN_RUN_ID") && !std::filesystem::exists(std::filesystem::path(file).parent_path(), error);
  return comes_later ? std::string() : file;
}

}  // namespace

void leave_error_file(const Environment& environment, const Verdict& verdict, MessageSink& sink) {
  const std::string file = wanted_at(environment);
  const FailureRecord* const failure = verdict.failure();
  if (file.empty() || failure == nullptr) return;
  std::optional<ErrorFile> own;
  if (!failure->error_file.empty()) {
    own = parse_error_file(read_small_file(failure->error_file, ErrorFile::kMostBytes).value_or(""));
  }
  const bool ended_early = verdict.culprit->success();
  const std::string cause =
      ended_early ? fmt::format("rank {} {}", verdict.culprit->rank, verdict.culprit->describe()) : std::string();
  write(file, error_file_for_parent(*failure, own, verdict.exit_code, cause), sink);
}

void leave_error_file(const Environment& environment, std::string_view message, MessageSink& sink) {
  const std::string file = wanted_at(environment);
  if (file.empty()) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  write(file, error_file_of_launcher(message, std::chrono::duration_cast<std::chrono::seconds>(now).count()), sink);
}

}  // namespace lrun::launcher
