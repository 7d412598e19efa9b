// Reads the hosts that a user gives with -H or in a hostfile. The reader of -H and multihost/named_hosts call it.
#include "cluster/user_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/nearest.h"
#include "base/numeric_address.h"
#include "base/shortened.h"
#include "base/split.h"
#include "base/user_error.h"
#include "base/whole_number.h"
#include "cluster/slurm_lists.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kMostShown = 80;
constexpr std::size_t kMostEntries = 4 * kMostHosts;

/// A mistake in an entry. The callers add the place where it stands.
struct Problem {
  std::string what;
  std::string hint;
};

[[noreturn]] void refuse(const std::string& text, const std::string& problem,
                         const std::string& hint = "write 'a:4' for host a with 4 workers, 'bob@a:4' for user bob") {
  throw Problem{fmt::format("'{}' {}", shortened(text, kMostShown), problem), hint};
}

int slots_in(std::string_view text, const std::string& entry) {
  const auto slots = whole_number<int>(text);
  if (slots && *slots >= 1 && *slots <= kMostSlots) return *slots;
  if (slots && *slots == 0) refuse(entry, "has no workers", "leave the host out");
  const std::string problem = fmt::format("has no number of workers from 1 to {}", kMostSlots);
  if (text.find(':') != std::string_view::npos)
    refuse(entry, problem, "commas stand between hosts, as in 'a:4,b:4'; a port of ssh is 'port=2222' in a hostfile");
  refuse(entry, problem);
}

bool is_name(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  return !text.empty() && text.front() != '-' && text.find_first_not_of(kLetters) == std::string_view::npos;
}

/// An IPv6 address: two colons at least, and perhaps an interface behind '%'.
bool is_address(std::string_view text) {
  const std::string_view address = text.substr(0, text.find('%'));
  return std::count(address.begin(), address.end(), ':') >= 2 &&
         address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos &&
         (address == text || is_name(text.substr(address.size() + 1)));
}

/// Cuts the part before ':N' off `rest`, which keeps the colon.
std::string_view cut_name(std::string_view& rest) {
  std::size_t end = 0;
  for (bool inside = false; end < rest.size() && (inside || rest[end] != ':'); ++end) {
    inside = rest[end] == '[' || (inside && rest[end] != ']');
  }
  const std::string_view name = rest.substr(0, end);
  rest.remove_prefix(end);
  return name;
}

/// 'n[01-16]', '[fe80::1]' and 'a' as names.
std::vector<std::string> names_in(std::string_view text, const std::string& entry) {
  if (text.starts_with('[') && text.ends_with(']') && is_address(text.substr(1, text.size() - 2))) {
    return {std::string(text.substr(1, text.size() - 2))};
  }
  const auto names = parse_slurm_hosts(text);
  if (!names || !std::all_of(names->begin(), names->end(), is_name)) {
    const bool is_file = text.find('/') != std::string_view::npos || text.ends_with(".txt");
    refuse(entry, "is not a host",
           is_file ? fmt::format("is a variable in front of it empty? '--hostfile {}' reads hosts from a file", text)
                   : "a name, an address, or a range such as 'n[01-16]'");
  }
  return *names;
}

/// One entry, which may be a range.
std::vector<Host> hosts_in(const std::string& entry) {
  std::string_view rest = entry;
  Host like;
  if (const auto star = rest.find('*'); star != std::string_view::npos) {
    like.slots = slots_in(rest.substr(0, star), entry);
    rest.remove_prefix(star + 1);
  }
  if (const auto at = rest.find('@'); at != std::string_view::npos) {
    like.user = rest.substr(0, at);
    if (!is_name(like.user)) refuse(entry, "has no user name before '@'");
    rest.remove_prefix(at + 1);
  }
  std::vector<std::string> names;
  if (is_address(rest)) {
    names.emplace_back(rest);
  } else {
    names = names_in(cut_name(rest), entry);
    if (entry.find_first_not_of("0123456789") == std::string::npos) {
      refuse(entry, "is a number, not a host", fmt::format("write a number of workers with ':', as in 'a:{}'", entry));
    }
    if (!rest.empty() && like.slots > 0) refuse(entry, "has two numbers of workers");
    if (!rest.empty()) like.slots = slots_in(rest.substr(1), entry);
    constexpr int kLeastPort = 1024;
    if (like.slots >= kLeastPort) {
      refuse(entry, fmt::format("asks for {} workers on one host", like.slots),
             "a port of ssh stands in \"--ssh 'ssh -p 2222'\"; so many workers are 'slots=2222' in a hostfile");
    }
  }
  std::vector<Host> hosts(names.size(), like);
  for (std::size_t i = 0; i < names.size(); ++i) hosts[i].name = std::move(names[i]);
  return hosts;
}

/// Hosts in the order in which they were named first.
class HostCollection {
 public:
  void add(const Host& host) {
    if (++entries_ > kMostEntries)
      refuse(host.name, fmt::format("is entry {} of the list", entries_), "name fewer hosts");
    const auto [place, is_new] = places_.emplace(host.name, hosts_.size());
    if (is_new) {
      if (hosts_.size() == kMostHosts) refuse(host.name, fmt::format("is one more than {} hosts", kMostHosts));
      hosts_.push_back(host);
      return;
    }
    repeats_ = true;
    Host& known = hosts_[place->second];
    if (known.user != host.user || known.port != host.port) {
      refuse(host.name, "is named twice, with different users or ports",
             "use the same user and port for a host everywhere");
    }
    known.slots = std::max(known.slots, 1) + std::max(host.slots, 1);
    if (known.slots > kMostSlots) refuse(host.name, fmt::format("has more than {} workers", kMostSlots));
  }

  /// In a list that names a host once per worker, every entry is one worker.
  std::vector<Host> take() {
    for (Host& host : hosts_) {
      if (repeats_ && host.slots == 0) host.slots = 1;
    }
    return std::move(hosts_);
  }

 private:
  std::size_t entries_ = 0;
  bool repeats_ = false;
  std::vector<Host> hosts_;
  std::unordered_map<std::string, std::size_t> places_;
};

/// Cuts the next entry off a list. It ends at a comma or blank outside of brackets.
std::string cut_entry(std::string_view& rest) {
  std::size_t end = 0;
  for (bool inside = false; end < rest.size(); ++end) {
    if (!inside && (rest[end] == ',' || kBlanks.find(rest[end]) != std::string_view::npos)) break;
    inside = rest[end] == '[' || (inside && rest[end] != ']');
  }
  std::string entry(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return entry;
}

void apply_word(const std::string& word, std::vector<Host>& hosts) {
  constexpr const char* kWords = "use 'slots=4', 'user=bob' or 'port=2222'";
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string name = word.substr(0, equals);
  const std::string value = word.substr(std::min(equals + 1, word.size()));
  if (equals == word.size()) {
    const auto slots = whole_number<int>(word);
    if (slots && *slots > 0) {
      refuse(word, "is not of the form 'NAME=VALUE'",
             fmt::format("for {} write '{} slots={}'", counted(*slots, "worker"), hosts.front().name, *slots));
    }
    refuse(word, "is not of the form 'NAME=VALUE'", "a line has one host, and 'slots=4', 'user=bob' or 'port=2222'");
  }
  if (name == "max_slots" || name == "max-slots") return;
  for (Host& host : hosts) {
    if (name == "slots" || name == "cpu" || name == "cpus" || name == "gpus") {
      if (host.slots > 0) refuse(word, "is a second number of workers", "give only one");
      host.slots = slots_in(value, word);
    } else if (name == "user") {
      if (!is_name(value)) refuse(word, "is not a user name", kWords);
      host.user = value;
    } else if (name == "port") {
      const auto port = whole_number<int>(value);
      if (!port || *port < 1 || *port > kMostPort) refuse(word, "is not a port", kWords);
      host.port = *port;
    } else {
      refuse(word, "is unknown in a hostfile", kWords);
    }
  }
}

void add_line(std::string_view line, HostCollection& hosts) {
  line = trimmed(line.substr(0, line.find('#')), kBlanks);
  if (line.empty()) return;
  std::vector<Host> named = hosts_in(cut_entry(line));
  while (!(line = trimmed(line, kBlanks)).empty()) {
    const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
    apply_word(std::string(line.substr(0, end)), named);
    line.remove_prefix(end);
  }
  for (const Host& host : named) hosts.add(host);
}

}  // namespace

std::vector<Host> parse_host_list(std::string_view text, const std::string& written) {
  HostCollection hosts;
  bool any = false;
  try {
    for (std::string_view rest = text; !rest.empty();) {
      const std::string entry = cut_entry(rest);
      if (entry.empty()) continue;
      any = true;
      for (const Host& host : hosts_in(entry)) hosts.add(host);
    }
  } catch (const Problem& problem) {
    throw UserError(fmt::format("'{}': {}", shortened(written, kMostShown), problem.what), problem.hint);
  }
  if (!any) throw UserError(fmt::format("'{}' names no host", written), "write '-H a:4,b:4'");
  return hosts.take();
}

std::vector<Host> parse_hostfile(std::string_view text, const std::string& path) {
  if (text.find('\0') != std::string_view::npos) {
    throw UserError(fmt::format("hostfile '{}' is not a text", path), "write a line 'a slots=4' for each host");
  }
  HostCollection hosts;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    ++number;
    try {
      add_line(cut(rest, '\n'), hosts);
    } catch (const Problem& problem) {
      throw UserError(fmt::format("{}:{}: {}", path, number, problem.what), problem.hint);
    }
  }
  std::vector<Host> all = hosts.take();
  if (all.empty())
    throw UserError(
        fmt::format("hostfile '{}' {}", path, trimmed(text, " \t\r\n").empty() ? "is empty" : "names no host"),
        "did the command that writes it fail? it needs a line such as 'node0 slots=4' for each host");
  return all;
}

std::string text_of(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    const bool brackets = host.name.find(':') != std::string::npos;
    text += text.empty() ? "" : ",";
    if (!host.user.empty()) text += host.user + "@";
    text += brackets ? "[" + host.name + "]" : host.name;
    if (host.slots > 0) text += ":" + std::to_string(host.slots);
  }
  return text;
}

}  // namespace lrun::launcher
