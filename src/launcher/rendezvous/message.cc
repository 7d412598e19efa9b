// In: messages, or bytes of a connection. Out: bytes as they travel, or messages whose fields are in range. Called by
// LauncherLink and RendezvousServer.
#include "rendezvous/message.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"
#include "base/numeric_address.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;
using Kind = LauncherMessage::Kind;

constexpr std::size_t kLengthBytes = 4;
constexpr unsigned kBitsOfByte = 8;

constexpr std::array<std::pair<Kind, std::string_view>, 26> kKinds{{
    {Kind::kJoin, "join"},
    {Kind::kHeartbeat, "beat"},
    {Kind::kStopping, "stopping"},
    {Kind::kBegun, "begun"},
    {Kind::kReport, "report"},
    {Kind::kReady, "ready"},
    {Kind::kDropOut, "leave"},
    {Kind::kLeaderless, "adrift"},
    {Kind::kLeave, "bye"},
    {Kind::kRejected, "refused"},
    {Kind::kWaiting, "waiting"},
    {Kind::kSpare, "spare"},
    {Kind::kBegin, "begin"},
    {Kind::kKnownToAll, "settled"},
    {Kind::kHeartbeatAck, "echo"},
    {Kind::kStop, "stop"},
    {Kind::kInvite, "invite"},
    {Kind::kRedirect, "elsewhere"},
    {Kind::kHasBegun, "has_begun"},
    {Kind::kLost, "lost"},
    {Kind::kResize, "resize"},
    {Kind::kOver, "over"},
    {Kind::kEnded, "ended"},
    {Kind::kNoRendezvous, "no_meeting"},
    {Kind::kAsk, "ask"},
    {Kind::kAnswer, "answer"},
}};

std::string_view kind_name(Kind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& entry) { return entry.first == kind; })->second;
}

std::optional<Kind> kind_named(const std::string& name) {
  const auto* const found =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& entry) { return entry.second == name; });
  return found == kKinds.end() ? std::nullopt : std::optional(found->first);
}

std::optional<LauncherMessage> read_fields(const Json& json, Kind kind) {
  LauncherMessage message{.kind = kind};
  if (json.contains("round")) message.round = json_integer(json.at("round"));
  message.text = json.value("text", std::string());
  message.hint = json.value("hint", std::string());
  message.node = json.value("node", std::string());
  message.spare = json.value("spare", std::string());
  if (json.contains("sent_ns")) message.sent_ns = json_integer<std::int64_t>(json.at("sent_ns"));
  if (json.contains("asker")) message.asker = static_cast<ConnectionId>(json_integer<std::int64_t>(json.at("asker")));
  if (json.contains("steady_ns")) message.steady_ns = json_integer<std::int64_t>(json.at("steady_ns"));
  if (json.contains("wall_ns")) message.wall_ns = json_integer<std::int64_t>(json.at("wall_ns"));
  if (json.contains("attempt")) message.attempt = json_integer(json.at("attempt"));
  message.known_to_all = json.value("settled", false);
  message.resumes = json.value("takes_up", false);
  if (json.contains("node_rank")) message.node_rank = json_integer(json.at("node_rank"));
  message.was_spare = json.value("was_spare", false);
  if (json.contains("port")) message.port = json_integer(json.at("port"));
  message.address = json.value("address", std::string());
  if (json.contains("successors")) {
    const auto successors = successors_from_json(json.at("successors").get<std::string>());
    if (!successors) return std::nullopt;
    message.successors = *successors;
  }
  if (json.contains("keeps")) {
    const auto keeps = file_owners_from_json(json.at("keeps").get<std::string>());
    if (!keeps) return std::nullopt;
    message.keeps = *keeps;
  }
  if (json.contains("join")) message.join = join_record_from_json(json.at("join").get<std::string>());
  if (json.contains("membership")) {
    message.membership =
        membership_from_json(json.at("membership").get<std::string>(), json.at("self").get<std::string>());
  }
  return message;
}

bool is_whole(const LauncherMessage& message) {
  if (message.attempt < 0 || message.port < 0 || message.port > kMostPort) return false;
  constexpr int kMostRounds = 1 << 30;  // room to count on
  if (message.round < 0 || message.round > kMostRounds || message.text.size() > kMostReportBytes) return false;
  if (message.node_rank && (*message.node_rank < 0 || *message.node_rank >= kMostNodesOfAJob)) return false;
  if (!message.address.empty() && !is_numeric_address(message.address)) return false;
  if (message.kind == Kind::kJoin) return message.join.has_value();
  if (message.kind == Kind::kInvite) return message.join && message.join->standby_port != 0;
  if (message.kind == Kind::kRedirect) return !message.address.empty() && message.port != 0;
  return message.kind != Kind::kBegin || message.membership.has_value();
}

/// All but Membership::self.
Json common_part(const LauncherMessage& message) {
  // Fields that have their default are left out: most messages are small, and there are many.
  Json json = {{"kind", kind_name(message.kind)}};
  if (message.round != 0) json["round"] = message.round;
  if (!message.text.empty()) json["text"] = message.text;
  if (!message.hint.empty()) json["hint"] = message.hint;
  if (!message.node.empty()) json["node"] = message.node;
  if (!message.spare.empty()) json["spare"] = message.spare;
  if (message.sent_ns != 0) json["sent_ns"] = message.sent_ns;
  if (message.asker != 0) json["asker"] = message.asker;
  if (message.steady_ns != 0) json["steady_ns"] = message.steady_ns;
  if (message.wall_ns != 0) json["wall_ns"] = message.wall_ns;
  if (message.attempt != 0) json["attempt"] = message.attempt;
  if (message.known_to_all) json["settled"] = true;
  if (message.resumes) json["takes_up"] = true;
  if (message.node_rank) json["node_rank"] = *message.node_rank;
  if (message.was_spare) json["was_spare"] = true;
  if (message.port != 0) json["port"] = message.port;
  if (!message.address.empty()) json["address"] = message.address;
  if (!message.successors.empty()) json["successors"] = to_json(message.successors);
  if (!message.keeps.empty()) json["keeps"] = to_json(message.keeps);
  if (message.join) json["join"] = to_json(*message.join);
  if (message.membership) json["membership"] = to_json(*message.membership);
  return json;
}

void append_length(std::string& out, std::size_t length) {
  for (std::size_t i = kLengthBytes; i-- > 0;) out.push_back(static_cast<char>((length >> (i * kBitsOfByte)) & 0xFFU));
}

}  // namespace

std::string to_json(const LauncherMessage& message) {
  Json json = common_part(message);
  if (message.membership) json["self"] = to_json(message.membership->self);
  return json_text(json);
}

std::optional<LauncherMessage> launcher_message_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const std::optional<Kind> kind = kind_named(json.at("kind").get<std::string>());
    if (!kind) return std::nullopt;
    std::optional<LauncherMessage> message = read_fields(json, *kind);
    return message && is_whole(*message) ? std::move(message) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void append_message(std::string& out, const LauncherMessage& message) {
  const std::string json = to_json(message);
  append_length(out, json.size());
  out += json;
}

EncodedMessage::EncodedMessage(const LauncherMessage& message) : json_(json_text(common_part(message))) {
  append_length(bytes_, json_.size());
  bytes_ += json_;
}

/// JSON has no order: the part that differs comes first, and the rest is copied as it is.
std::string_view EncodedMessage::bytes_for(const Member& self) {
  const std::string own = json_text({{"self", to_json(self)}});
  bytes_.clear();
  append_length(bytes_, own.size() + json_.size() - 1);
  bytes_.append(own, 0, own.size() - 1).append(1, ',').append(json_, 1);
  return bytes_;
}

std::optional<LauncherMessage> LauncherMessageDecoder::next() {
  if (!refusal_.empty()) return std::nullopt;
  const std::string_view left = std::string_view(bytes_).substr(taken_);
  std::size_t length = 0;
  for (std::size_t i = 0; i < std::min(kLengthBytes, left.size()); ++i) {
    length = (length << kBitsOfByte) | static_cast<unsigned char>(left[i]);
  }
  if (left.size() >= kLengthBytes && length > most_bytes_) {
    refusal_ = "a message of " + std::to_string(length) + " bytes, and the limit is " + std::to_string(most_bytes_);
    return std::nullopt;
  }
  if (left.size() < kLengthBytes || left.size() - kLengthBytes < length) {
    bytes_.erase(0, std::exchange(taken_, 0));  // once a batch, not once a message
    return std::nullopt;
  }
  taken_ += kLengthBytes + length;
  std::optional<LauncherMessage> message = launcher_message_from_json(left.substr(kLengthBytes, length));
  if (!message) refusal_ = "an invalid message";
  return message;
}

}  // namespace lrun::launcher
