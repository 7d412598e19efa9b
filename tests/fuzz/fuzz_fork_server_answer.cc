// An answer of a fork server is read whole or not at all; a pid that it names can be one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "run/fork_server_answer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lrun::launcher;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto answer = parse_fork_server_answer(bytes);
  if (!answer) return 0;
  const bool is_forked = answer->kind == ForkServerAnswer::Kind::kForked;
  if (is_forked != (answer->pid > 0) || bytes.size() > kMostAnswerBytes) std::abort();
  if (!answer->text.empty() && answer->text != bytes.substr(1)) std::abort();
  return 0;
}
