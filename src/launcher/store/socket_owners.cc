// In: connections that the store has accepted. Out: the user and the socket at their other end. StoreServer asks.
#include "store/socket_owners.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/small_file.h"
#include "base/split.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

constexpr std::uint8_t kListening = 10;  // TCP_LISTEN

using Words = std::array<std::uint32_t, 4>;

bool is_mapped(const Words& address) { return address[0] == 0 && address[1] == 0 && address[2] == htonl(0xFFFF); }

struct End {
  bool is_ipv6 = false;
  Words address{};
  std::uint16_t port = 0;
  std::uint32_t scope = 0;
};

/// By getpeername() or getsockname(). \return empty when the socket is not a TCP connection.
template <typename Name>
std::optional<End> end_by(Name& name, int socket) {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  if (name(socket, reinterpret_cast<sockaddr*>(&bytes), &size) != 0) return std::nullopt;
  End end;
  if (bytes.ss_family == AF_INET) {
    const auto* const ipv4 = reinterpret_cast<const sockaddr_in*>(&bytes);
    end.address[0] = ipv4->sin_addr.s_addr;
    end.port = ipv4->sin_port;
    return end;
  }
  if (bytes.ss_family != AF_INET6) return std::nullopt;
  const auto* const ipv6 = reinterpret_cast<const sockaddr_in6*>(&bytes);
  std::memcpy(end.address.data(), &ipv6->sin6_addr, sizeof end.address);
  end.port = ipv6->sin6_port;
  end.scope = ipv6->sin6_scope_id;
  end.is_ipv6 = !is_mapped(end.address);
  if (!end.is_ipv6) end.address = {end.address[3], 0, 0, 0};
  return end;
}

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 request{};
};

/// The question is about the peer's socket, whose own end is the other end for us.
Question question_about(const ConnectionPlace& place, std::uint32_t number) {
  Question question;
  question.header.nlmsg_seq = number;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = question.request;
  request.sdiag_family = place.is_ipv6 ? AF_INET6 : AF_INET;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = ~std::uint32_t{0};
  request.id.idiag_sport = place.peer_port;
  request.id.idiag_dport = place.own_port;
  std::copy(place.peer.begin(), place.peer.end(), request.id.idiag_src);
  std::copy(place.own.begin(), place.own.end(), request.id.idiag_dst);
  request.id.idiag_if = place.interface;
  std::fill(std::begin(request.id.idiag_cookie), std::end(request.id.idiag_cookie), INET_DIAG_NOCOOKIE);
  return question;
}

/// A socket without an inode does not belong to a process any more.
ConnectionPeer peer_with(std::uint32_t user, std::uint64_t inode) {
  if (inode == 0) return {ConnectionPeer::Where::kGone, 0, 0};
  return {ConnectionPeer::Where::kHere, user, inode};
}

/// '0100007F:1F90': the address in 32-bit words of this machine's byte order.
std::string in_table(const Words& address, std::size_t words, std::uint16_t port) {
  std::string text;
  for (std::size_t i = 0; i < words; ++i) text += fmt::format("{:08X}", address[i]);
  return text + fmt::format(":{:04X}", ntohs(port));
}

/// The two ends as a line of a table has them, between blanks.
std::string both_ends(const Words& local, const Words& remote, std::size_t words, const ConnectionPlace& place) {
  return " " + in_table(local, words, place.peer_port) + " " + in_table(remote, words, place.own_port) + " ";
}

ConnectionPlace other_side(const ConnectionPlace& place) {
  ConnectionPlace other = place;
  std::swap(other.peer, other.own);
  std::swap(other.peer_port, other.own_port);
  return other;
}

}  // namespace

bool ConnectionPlace::is_within_host() const {
  constexpr std::uint32_t kLoopback = 127;
  const bool loopback = is_ipv6 ? peer == Words{0, 0, 0, htonl(1)} : (ntohl(peer[0]) >> 24U) == kLoopback;
  return loopback || peer == own;
}

std::optional<ConnectionPlace> place_of_connection(int socket) {
  const std::optional<End> peer = end_by(::getpeername, socket);
  const std::optional<End> own = end_by(::getsockname, socket);
  if (!peer || !own) return std::nullopt;
  return ConnectionPlace{peer->is_ipv6, peer->address, own->address, peer->port, own->port, peer->scope};
}

ConnectionPeer SocketOwners::peer_of(const ConnectionPlace& place) {
  if (!works_) works_ = answers_for(place);
  ConnectionPeer peer;
  Answer answer = *works_ ? ask(place, peer) : Answer::kCannotTell;
  if (answer == Answer::kCannotTell) answer = look_up(place, peer);
  if (answer == Answer::kNone && place.is_within_host()) peer.where = ConnectionPeer::Where::kGone;
  return peer;
}

/// Where our own end is missing from the table, or has no owner, the table says nothing about other sockets either.
SocketOwners::Answer SocketOwners::look_up(const ConnectionPlace& place, ConnectionPeer& peer) {
  constexpr std::size_t kMostTableBytes = std::size_t{64} << 20U;
  Answer answer = Answer::kCannotTell;
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string text = read_small_file(table, kMostTableBytes).value_or("");
    if (const auto found = find_socket(text, place)) {
      peer = *found;
      return Answer::kFound;
    }
    const auto ourselves = find_socket(text, other_side(place));
    if (ourselves && ourselves->where == ConnectionPeer::Where::kHere) answer = Answer::kNone;
  }
  return answer;
}

/// A kernel without netlink for sockets answers that no socket exists, even for ours.
bool SocketOwners::answers_for(const ConnectionPlace& place) {
  netlink_ = Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  ConnectionPeer ourselves;
  return netlink_ && ask(other_side(place), ourselves) == Answer::kFound &&
         ourselves.where == ConnectionPeer::Where::kHere;
}

SocketOwners::Answer SocketOwners::ask(const ConnectionPlace& place, ConnectionPeer& peer) {
  const Question question = question_about(place, ++last_question_);
  if (::send(netlink_.get(), &question, sizeof question, 0) != sizeof question) return Answer::kCannotTell;
  char bytes[1024];
  ssize_t size = 0;
  nlmsghdr header{};
  do {  // the kernel answers before send() returns
    size = ::recv(netlink_.get(), bytes, sizeof bytes, 0);
    if (size < static_cast<ssize_t>(sizeof header)) return Answer::kCannotTell;
    std::memcpy(&header, bytes, sizeof header);
  } while (header.nlmsg_seq != last_question_);
  const auto has = [&](std::size_t body) { return static_cast<std::size_t>(size) >= NLMSG_HDRLEN + body; };
  if (header.nlmsg_type == NLMSG_ERROR && has(sizeof(nlmsgerr))) {
    nlmsgerr error;
    std::memcpy(&error, bytes + NLMSG_HDRLEN, sizeof error);
    return error.error == -ENOENT ? Answer::kNone : Answer::kCannotTell;
  }
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || !has(sizeof(inet_diag_msg))) return Answer::kCannotTell;
  inet_diag_msg found;
  std::memcpy(&found, bytes + NLMSG_HDRLEN, sizeof found);
  // Without such a connection the kernel answers with the socket that listens at the peer's port.
  if (found.idiag_state == kListening || found.id.idiag_dport != place.own_port) return Answer::kNone;
  peer = peer_with(found.idiag_uid, found.idiag_inode);
  return Answer::kFound;
}

std::optional<ConnectionPeer> find_socket(std::string_view table, const ConnectionPlace& place) {
  const auto mapped = [](const Words& address) { return Words{0, 0, htonl(0xFFFF), address[0]}; };
  const std::size_t words = place.is_ipv6 ? place.peer.size() : 1;
  const std::string plain = both_ends(place.peer, place.own, words, place);
  const std::string in_ipv6 = both_ends(mapped(place.peer), mapped(place.own), place.peer.size(), place);
  const std::size_t at = std::min(table.find(plain), table.find(in_ipv6));
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = table.substr(at, table.find('\n', at) - at);
  std::vector<std::string_view> columns;  // both ends, state, queues, timer, retransmits, user, timeout, inode
  while (!rest.empty()) {
    if (const std::string_view column = cut(rest, ' '); !column.empty()) columns.push_back(column);
  }
  constexpr std::size_t kUser = 6;
  constexpr std::size_t kInode = 8;
  if (columns.size() <= kInode) return std::nullopt;
  const auto user = whole_number<std::uint32_t>(columns[kUser]);
  const auto inode = whole_number<std::uint64_t>(columns[kInode]);
  return user && inode ? std::optional(peer_with(*user, *inode)) : std::nullopt;
}

}  // namespace lrun::launcher
