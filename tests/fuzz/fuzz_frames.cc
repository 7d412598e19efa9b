// Frames between a launcher and the one that started it on its host, in both directions.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "remote/frames.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto order = lrun::launcher::decode_order(bytes); order && lrun::launcher::encode(*order) != bytes) {
    if (lrun::launcher::decode_order(lrun::launcher::encode(*order)) != order) __builtin_trap();
  }
  (void)lrun::launcher::decode_ready(bytes);
  (void)lrun::launcher::decode_go(bytes);
  if (const auto start = lrun::launcher::decode_host_start(bytes)) {
    if (lrun::launcher::decode_host_start(lrun::launcher::encode(*start)) != start) __builtin_trap();
  }
  if (const auto end = lrun::launcher::decode_host_end(bytes)) {
    if (lrun::launcher::decode_host_end(lrun::launcher::encode(*end)) != end) __builtin_trap();
  }
  (void)lrun::launcher::decode_host_frame(bytes);
  lrun::launcher::NodeFrameReader reader(size % 2 == 0 ? lrun::launcher::kNodeHandshake : std::string_view());
  for (std::size_t at = 0; at < size; at += 7) {
    reader.feed(bytes.substr(at, 7));
    while (const auto frame = reader.next()) {
      if (frame->payload.size() > size) __builtin_trap();
    }
  }
  return 0;
}
