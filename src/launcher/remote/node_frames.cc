#include "remote/node_frames.h"

#include <cstdint>
#include <utility>

#include "remote/frame_fields.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kHeadBytes = 1 + sizeof(std::uint32_t);
constexpr std::size_t kMostBeforeGreeting = std::size_t{1} << 20U;

bool is_kind(char letter) { return std::string_view("ogscapthSrfOEJNBXFTY").find(letter) != std::string_view::npos; }

}  // namespace

std::string encode(NodeFrame::Kind kind, std::string_view payload) {
  std::string bytes(1, static_cast<char>(kind));
  bytes.reserve(kHeadBytes + payload.size());
  put_number(bytes, static_cast<std::uint32_t>(payload.size()));
  return bytes.append(payload);
}

void NodeFrameReader::take(std::string_view bytes) {
  if (broken_) return;
  if (begin_ > 0) bytes_.erase(0, std::exchange(begin_, 0));
  bytes_ += bytes;
  if (greeting_.empty()) return;
  const auto place = bytes_.find(greeting_);
  if (place == std::string::npos) {
    broken_ = bytes_.size() > kMostBeforeGreeting;
    return;
  }
  bytes_.erase(0, place + greeting_.size());
  greeting_ = {};
}

std::optional<NodeFrame> NodeFrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  if (broken_ || !greeted() || rest.empty()) return std::nullopt;
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
  out.put(order.nodes).put(order.node_rank).put(order.devices).put(order.devices_origin).put(order.run_name);
  return out.put(order.secret).put(order.port).put(order.colour ? 1 : 0).put(order.most_silence).take();
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
  order.run_name = in.text();
  order.secret = in.text();
  order.port = in.number();
  order.colour = in.number() != 0;
  order.most_silence = in.number();
  const bool has_place = order.node_rank >= 0 && static_cast<std::size_t>(order.node_rank) < order.nodes.size();
  if (!in.whole() || !has_place || order.command.empty()) return std::nullopt;
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

}  // namespace lrun::launcher
