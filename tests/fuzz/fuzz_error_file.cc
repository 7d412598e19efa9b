#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "verdict/error_file.h"
#include "verdict/failure_record.h"

namespace {

/// Aborts, which libFuzzer reports with the input.
void demand(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

/// Input: a worker's error file, and a record that another launcher might send.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = lrun::parse_error_file(text);
  if (file) {
    demand(file->time >= 0);
    demand(!file->message.empty() || !file->call_stack.empty() || file->plain);
    const std::string passed_on = lrun::error_file_for_parent({}, file, 9);
    if (passed_on.size() <= lrun::ErrorFile::kMostBytes) {
      const auto again = lrun::parse_error_file(passed_on);
      demand(again && again->time == file->time && again->plain == file->plain);
    }
  }
  if (const auto record = lrun::failure_record_from_json(text)) {
    const auto again = lrun::failure_record_from_json(lrun::to_json(*record));
    demand(!again || again->rank == record->rank);
  }
  const auto own = lrun::parse_error_file(lrun::error_file_of_launcher(text, 17));
  demand(own.has_value() || text.empty() || text.size() > lrun::ErrorFile::kMostBytes / 8);
  return 0;
}
