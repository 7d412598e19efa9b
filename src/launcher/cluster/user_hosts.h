#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// One machine that a user named.
struct Host {
  std::string name;               ///< a name or a numeric address
  std::string user = {};          ///< to log in as; empty: ssh decides
  int port = 0;                   ///< port of its ssh server; 0: ssh decides
  int slots = 0;                  ///< the number of its workers; 0: not given
  std::vector<int> devices = {};  ///< the numbers of the devices that it uses; empty: not given

  bool operator==(const Host&) const = default;
};

/// The value of --hosts.
struct HostList {
  std::string text;  ///< as the user wrote it
  std::vector<Host> hosts;

  bool operator==(const HostList&) const = default;
};

inline const std::string& text_of(const HostList& list) { return list.text; }

/// Larger numbers of hosts, or of slots of a host, are rejected as typing mistakes.
inline constexpr std::size_t kMostHosts = 65'536;
inline constexpr int kMostSlots = 65'536;

/// Reads the hosts of a command line, with commas or blanks between them: 'a', 'a:4', '4*a', 'bob@a:4', 'n[01-16]:4',
/// '[fe80::1]:4'. A host may be named several times, and its slots add up. In such a list an entry without a number
/// counts as one slot: 'a,a,b' is 'a:2,b:1'.
/// \param written  the option as the user wrote it, for messages: '-H a:4,b:4'.
/// \throws UserError  an entry cannot be read; the message names it and how to write it.
std::vector<Host> parse_host_list(std::string_view text, const std::string& written);

/// Reads a hostfile. A line has a host in the grammar above, then 'slots=4' (or 'cpu=4', 'gpus=4'), 'max_slots=8' (not
/// used), 'user=bob', 'port=2222', with blanks between them. '#' begins a comment.
/// \param path  for messages.
/// \throws UserError  a line cannot be read; the message has its number.
std::vector<Host> parse_hostfile(std::string_view text, const std::string& path);

/// 'a:4,b:2', in the grammar of parse_host_list().
std::string text_of(const std::vector<Host>& hosts);

}  // namespace lrun::launcher
