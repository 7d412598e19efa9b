// In: bytes of a stream between the head and a host's lrun, or values. Out: frames and values, or bytes. Called by both
// ends: HostLink and HostLinks of the head and of a relay, host_agent and relay_agent on the host.
#include "remote/frames.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "plan/run_id.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kHeadBytes = 1 + sizeof(std::uint32_t);
constexpr std::size_t kMostBeforeHandshake = std::size_t{1} << 20U;
constexpr std::size_t kMostTexts = std::size_t{1} << 20U;

bool is_kind(char letter) { return std::string_view("ogscqapthSrfOEJNBXAFTY").find(letter) != std::string_view::npos; }

/// Four bytes, the lowest first.
void put_number(std::string& bytes, std::uint32_t number) {
  for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift & 0xFFU);
}

/// \param bytes  at least four.
std::uint32_t number_at(std::string_view bytes) {
  std::uint32_t number = 0;
  for (unsigned i = 0; i < sizeof number; ++i) {
    number |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return number;
}

/// The fields of a frame's payload, one behind the other.
class FieldWriter {
 public:
  FieldWriter& put(std::string_view text) {
    put_number(bytes_, static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  FieldWriter& put(int number) {
    put_number(bytes_, static_cast<std::uint32_t>(number));
    return *this;
  }
  FieldWriter& put(const std::vector<std::string>& texts) {
    put(static_cast<int>(texts.size()));
    for (const std::string& text : texts) put(std::string_view(text));
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads the payload of a FieldWriter, from anybody. A missing field reads as 0 or an empty text, and is remembered.
class FieldReader {
 public:
  /// \param bytes  the caller's, which keeps them.
  explicit FieldReader(std::string_view bytes) : bytes_(bytes) {}

  int number() {
    if (bytes_.size() < sizeof(std::uint32_t)) return fail();
    const std::uint32_t number = number_at(bytes_);
    bytes_.remove_prefix(sizeof number);
    return static_cast<int>(number);
  }
  std::string text() {
    const auto size = static_cast<std::size_t>(static_cast<std::uint32_t>(number()));
    if (size > bytes_.size()) fail();
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(std::min(size, bytes_.size()));
    return text;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> texts(count());
    for (std::string& each : texts) each = text();
    return texts;
  }
  /// The number of entries that follow. Each has a byte at least, so that a foreign number makes no large vector.
  std::size_t count() {
    const auto count = static_cast<std::size_t>(static_cast<std::uint32_t>(number()));
    if (count > kMostTexts || count > bytes_.size()) return static_cast<std::size_t>(fail());
    return count;
  }
  /// Everything was there, and nothing more.
  [[nodiscard]] bool whole() const { return whole_ && bytes_.empty(); }

 private:
  int fail() {
    whole_ = false;
    bytes_ = {};
    return 0;
  }

  std::string_view bytes_;
  bool whole_ = true;
};

}  // namespace

std::string encode(NodeFrame::Kind kind, std::string_view payload) {
  std::string bytes(1, static_cast<char>(kind));
  bytes.reserve(kHeadBytes + payload.size());
  put_number(bytes, static_cast<std::uint32_t>(payload.size()));
  return bytes.append(payload);
}

void NodeFrameReader::feed(std::string_view bytes) {
  if (broken_) return;
  if (begin_ > 0) bytes_.erase(0, std::exchange(begin_, 0));
  bytes_ += bytes;
  if (handshake_.empty()) return;
  const auto place = bytes_.find(handshake_);
  if (place == std::string::npos) {
    broken_ = bytes_.size() > kMostBeforeHandshake;
    return;
  }
  bytes_.erase(0, place + handshake_.size());
  handshake_ = {};
}

std::optional<NodeFrame> NodeFrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  if (broken_ || !has_handshake() || rest.empty()) return std::nullopt;
  if (!is_kind(rest.front())) broken_ = true;
  if (broken_ || rest.size() < kHeadBytes) return std::nullopt;
  const std::size_t size = number_at(rest.substr(1));
  if (size > kMostFrameBytes) broken_ = true;
  if (broken_ || rest.size() - kHeadBytes < size) return std::nullopt;
  begin_ += kHeadBytes + size;
  return NodeFrame{static_cast<NodeFrame::Kind>(rest.front()), std::string(rest.substr(kHeadBytes, size))};
}

std::string encode(const NodeOrder& order) {
  FieldWriter out;
  out.put(order.version).put(order.compat).put(static_cast<int>(order.values.size()));
  for (const CarriedValue& value : order.values) {
    out.put(value.option).put(value.text).put(value.source).put(value.origin).put(value.place).put(value.ranks);
  }
  out.put(order.command).put(order.environment).put(order.folder).put(order.needs_folder ? 1 : 0).put(order.name);
  out.put(order.nodes).put(order.node_rank).put(order.devices).put(order.devices_origin).put(order.run_id);
  return out.put(order.run_name)
      .put(order.secret)
      .put(order.port)
      .put(order.colour ? 1 : 0)
      .put(order.most_silence)
      .take();
}

std::string version_of_order(std::string_view bytes) { return FieldReader(bytes).text(); }

std::optional<NodeOrder> decode_order(std::string_view bytes) {
  FieldReader in(bytes);
  NodeOrder order;
  order.version = in.text();
  order.compat = in.number();
  order.values.resize(in.count());
  for (CarriedValue& value : order.values) {
    value.option = in.text();
    value.text = in.text();
    value.source = in.number();
    value.origin = in.text();
    value.place = in.text();
    value.ranks = in.text();
  }
  order.command = in.texts();
  order.environment = in.texts();
  order.folder = in.text();
  order.needs_folder = in.number() != 0;
  order.name = in.text();
  order.nodes = in.texts();
  order.node_rank = in.number();
  order.devices = in.text();
  order.devices_origin = in.text();
  order.run_id = in.text();
  order.run_name = in.text();
  order.secret = in.text();
  order.port = in.number();
  order.colour = in.number() != 0;
  order.most_silence = in.number();
  const bool is_named_well = order.run_id.empty() || is_run_id(order.run_id);
  const bool has_place = order.node_rank >= 0 && static_cast<std::size_t>(order.node_rank) < order.nodes.size();
  if (!in.whole() || !has_place || !is_named_well || order.command.empty()) return std::nullopt;
  return order;
}

std::string encode(const NodeReady& ready) {
  return FieldWriter().put(ready.port).put(ready.own_address).put(ready.head_address).put(ready.machine).take();
}

std::optional<NodeReady> decode_ready(std::string_view bytes) {
  FieldReader in(bytes);
  NodeReady ready;
  ready.port = in.number();
  ready.own_address = in.text();
  ready.head_address = in.text();
  ready.machine = in.text();
  return in.whole() ? std::optional(std::move(ready)) : std::nullopt;
}

std::string encode(const NodeGo& go) { return FieldWriter().put(go.port).put(go.address).put(go.one_host).take(); }

std::optional<NodeGo> decode_go(std::string_view bytes) {
  FieldReader in(bytes);
  NodeGo go;
  go.port = in.number();
  go.address = in.text();
  go.one_host = in.texts();
  return in.whole() ? std::optional(std::move(go)) : std::nullopt;
}

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
