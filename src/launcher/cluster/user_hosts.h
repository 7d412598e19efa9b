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
  int port = 0;                   ///< of its ssh server; 0: ssh decides
  int slots = 0;                  ///< workers it is to have; 0: not said
  std::vector<int> devices = {};  ///< the numbers of those of its devices that it is to use; empty: not said

  bool operator==(const Host&) const = default;
};

/// The value of --hosts.
struct HostList {
  std::string text;  ///< as the user wrote it
  std::vector<Host> hosts;

  bool operator==(const HostList&) const = default;
};

inline const std::string& text_of(const HostList& list) { return list.text; }

/// More hosts than this, or slots of one, are a slip of the pen.
inline constexpr std::size_t kMostHosts = 65'536;
inline constexpr int kMostSlots = 65'536;

/// Reads hosts as they stand on a command line, between commas or blanks: 'a', 'a:4', '4*a', 'bob@a:4', 'n[01-16]:4',
/// '[fe80::1]:4'. A host that is named again gets further slots, of which an entry without a number is one; so is then
/// every other entry without a number: 'a,a,b' is 'a:2,b:1'.
/// \param written  how the user wrote it, for messages: '-H a:4,b:4'.
/// \throws UserError  which entry cannot be read, and how to write it.
std::vector<Host> parse_host_list(std::string_view text, const std::string& written);

/// Reads a hostfile: a host a line in the grammar above, then, between blanks, 'slots=4' (or 'cpu=4', 'gpus=4'),
/// 'max_slots=8' (not used), 'user=bob', 'port=2222'. '#' begins a comment.
/// \param path  for messages.
/// \throws UserError  with the number of the line.
std::vector<Host> parse_hostfile(std::string_view text, const std::string& path);

/// 'a:4,b:2': what parse_host_list() reads.
std::string in_words(const std::vector<Host>& hosts);

}  // namespace lrun::launcher
