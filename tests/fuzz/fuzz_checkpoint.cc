// The files of a checkpoint: whatever is accepted lies within the bytes it was given and is written again as it was
// read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/checkpoint/checkpoint_name.h"
#include "runtime/checkpoint/format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lrun::detail;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto decoded = decode_checkpoint_header(bytes, size);
  if (const auto* header = std::get_if<CheckpointHeader>(&decoded)) {
    if (header->content_size != size - kCheckpointHeaderBytes || header->part >= header->parts) std::abort();
    const auto again = encode_checkpoint_header(*header);
    if (std::get<CheckpointHeader>(decode_checkpoint_header({again.data(), again.size()}, size)) != *header)
      std::abort();
  }
  if (size > 0) {
    const auto parts = decode_checkpoint_parts(bytes.substr(1), data[0]);
    if (parts && (parts->size() != data[0] || encode_checkpoint_parts(*parts) != bytes.substr(1))) std::abort();
  }
  const auto name = parse_checkpoint_name(bytes);
  if (name && spell(*name) != bytes) std::abort();
  return 0;
}
