// An answer of a fork server is read whole or not at all; a pid that it names can be one. A note of an import names a
// module.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "run/fork_server_answer.h"
#include "run/unfinished_import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lrun::launcher;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto unfinished = parse_unfinished_import(bytes);
  if (unfinished &&
      (unfinished->module.empty() || unfinished->module.size() + unfinished->list.size() > bytes.size())) {
    std::abort();
  }
  const auto answer = parse_fork_server_answer(bytes);
  if (!answer) return 0;
  const bool is_forked = answer->kind == ForkServerAnswer::Kind::kForked;
  if (is_forked == answer->pids.empty() || bytes.size() > kMostAnswerBytes) std::abort();
  for (const pid_t pid : answer->pids) {
    if (pid <= 0) std::abort();
  }
  if (!answer->text.empty() && answer->text != bytes.substr(1)) std::abort();
  return 0;
}
