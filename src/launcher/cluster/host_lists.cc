#include "cluster/host_lists.h"

#include <array>
#include <unordered_set>

#include "base/split.h"
#include "base/whole_number.h"
#include "cluster/outer_launcher.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kBlanksAndEnds = " \t\r\n";

/// Removes the next word from `rest` and returns it; empty at the end.
std::string_view next_word(std::string_view& rest) {
  rest = trimmed(rest, kBlanksAndEnds);
  const auto end = rest.find_first_of(kBlanksAndEnds);
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(word.size());
  return word;
}

/// Keeps each host once, in order.
class HostSet {
 public:
  void add(std::string_view host) {
    if (host.empty() || !seen_.emplace(host).second) return;
    hosts_.emplace_back(host);
  }
  [[nodiscard]] std::vector<std::string> take() {
    return hosts_.size() > kMostListedHosts ? std::vector<std::string>() : std::move(hosts_);
  }

 private:
  std::unordered_set<std::string> seen_;
  std::vector<std::string> hosts_;
};

/// A variable that names a file of hosts.
struct FileVariable {
  const char* manager;
  const char* name;
};

constexpr std::array kFileVariables{FileVariable{"PBS", "PBS_NODEFILE"}, FileVariable{"LSF", "LSB_DJOB_HOSTFILE"},
                                    FileVariable{"Grid Engine", "PE_HOSTFILE"}};

}  // namespace

std::vector<std::string> hosts_in_lines(std::string_view text) {
  HostSet hosts;
  while (!text.empty()) {
    std::string_view line = cut(text, '\n');
    line = cut(line, '#');
    hosts.add(next_word(line));
  }
  return hosts.take();
}

std::vector<std::string> hosts_in_pairs(std::string_view text) {
  HostSet hosts;
  for (text = trimmed(text, kBlanksAndEnds); !text.empty(); text = trimmed(text, kBlanksAndEnds)) {
    const std::string_view host = next_word(text);
    const auto slots = whole_number<int>(next_word(text));
    if (!slots || *slots < 1) return {};
    hosts.add(host);
  }
  return hosts.take();
}

std::optional<ListedHosts> find_listed_hosts(const ManagerView& view) {
  if (is_worker(view.environment)) return std::nullopt;
  ListedHosts list;
  if (const Reported<std::string> pairs = reported_text(view.environment, "LSB_MCPU_HOSTS"); pairs.known()) {
    list = {"LSF", pairs.by, hosts_in_pairs(pairs.value)};
  }
  for (const FileVariable& variable : kFileVariables) {
    const Reported<std::string> path = reported_text(view.environment, variable.name);
    if (!list.hosts.empty() || !path.known()) continue;
    list = {variable.manager, path.by, hosts_in_lines(view.read(path.value))};
  }
  const bool has_launch_node = list.manager == "LSF" && reported_text(view.environment, "CSM_ALLOCATION_ID").known();
  if (has_launch_node && list.hosts.size() > 1) list.hosts.erase(list.hosts.begin());
  return list.hosts.size() > 1 ? std::optional(std::move(list)) : std::nullopt;
}

}  // namespace lrun::launcher
