#include "report/result_json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/fd.h"
#include "base/json_text.h"

namespace lrun {

std::string result_json(const std::string& run_id, const Verdict& verdict, const std::vector<FailureRecord>& records,
                        const std::string& text, const std::string& hint) {
  std::string endings;
  for (const FailureRecord& record : records) {
    endings += (endings.empty() ? "\n  " : ",\n  ") + to_json(record);
  }
  return fmt::format(
      R"({{"schema": 1, "run_id": {}, "reason": "{}", "signal": {}, "exit_code": {}, "restarts": {},
 "culprit": {},
 "overruled": {},
 "hint": {},
 "text": {},
 "workers": [{}]}}
)",
      json_string(run_id), name_of(verdict.end.kind), verdict.end.signal_number, verdict.exit_code, verdict.restarts,
      verdict.culprit ? to_json(*verdict.culprit) : "null", verdict.overruled ? to_json(*verdict.overruled) : "null",
      json_string(hint), json_string(text), endings);
}

void write_atomically(const std::filesystem::path& file, std::string_view text) {
  const std::string beside = file.string() + ".new";
  ::unlink(beside.c_str());  // whatever it is, a pipe that would make us wait or a link, the file is to be a new one
  const Fd out(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out) throw std::system_error(errno, std::generic_category(), "open '" + beside + "'");
  if (const int error = write_all(out.get(), text); error != 0) {
    throw std::system_error(error, std::generic_category(), "write '" + beside + "'");
  }
  if (::rename(beside.c_str(), file.c_str()) != 0) {
    throw std::system_error(errno, std::generic_category(), "rename '" + beside + "'");
  }
}

}  // namespace lrun
