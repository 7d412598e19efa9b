#include "remote/relay_frames.h"

#include <utility>

#include "remote/frame_fields.h"

namespace lrun::launcher {

std::string encode(const HostStart& start) {
  return FieldWriter().put(start.number).put(start.command).put(start.copies ? 1 : 0).take();
}

std::string encode(const HostEnd& end) {
  FieldWriter out;
  out.put(end.number).put(static_cast<int>(end.status.kind)).put(end.status.value).put(end.last_line);
  return out.take();
}

std::string frame_of_host(int number, NodeFrame::Kind kind, std::string_view payload) {
  return FieldWriter().put(number).put(encode(kind, payload)).take();
}

std::optional<HostStart> decode_host_start(std::string_view payload) {
  FieldReader in(payload);
  HostStart start;
  start.number = in.number();
  start.command = in.texts();
  start.copies = in.number() != 0;
  return in.whole() ? std::optional(std::move(start)) : std::nullopt;
}

std::optional<HostFrame> decode_host_frame(std::string_view payload) {
  FieldReader in(payload);
  HostFrame frame;
  frame.number = in.number();
  frame.bytes = in.text();
  return in.whole() ? std::optional(std::move(frame)) : std::nullopt;
}

std::optional<HostEnd> decode_host_end(std::string_view payload) {
  FieldReader in(payload);
  HostEnd end;
  end.number = in.number();
  const int kind = in.number();
  end.status.kind =
      kind == static_cast<int>(ExitStatus::Kind::kSignaled) ? ExitStatus::Kind::kSignaled : ExitStatus::Kind::kExited;
  end.status.value = in.number();
  end.last_line = in.text();
  return in.whole() ? std::optional(std::move(end)) : std::nullopt;
}

}  // namespace lrun::launcher
