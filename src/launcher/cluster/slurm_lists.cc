// Reads Slurm's compressed lists of hosts ('n[01-16]') and of counts ('3,1(x2)'). The readers of Slurm's variables call
// it, and those of host lists that users write.
#include "cluster/slurm_lists.h"

#include <algorithm>
#include <cstdint>

#include "base/split.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

using Texts = std::vector<std::string>;

/// Adds the numbers of '08-10' or '7', as text. \return false when they are not numbers, or too many.
bool add_range(std::string_view range, Texts& numbers) {
  const bool is_one = range.find('-') == std::string_view::npos;
  const std::string_view first_text = cut(range, '-');
  const auto first = whole_number<std::uint32_t>(first_text);
  const auto last = is_one ? first : whole_number<std::uint32_t>(range);
  if (!first || !last || *last < *first || *last - *first >= kMostSlurmEntries - numbers.size()) return false;
  for (std::uint64_t number = *first; number <= *last; ++number) {
    std::string text = std::to_string(number);
    if (text.size() < first_text.size()) text.insert(0, first_text.size() - text.size(), '0');
    numbers.push_back(std::move(text));
  }
  return true;
}

/// Appends each number to each beginning. \return false when that gives too many.
bool multiply(Texts& beginnings, const Texts& numbers) {
  if (beginnings.size() * numbers.size() > kMostSlurmEntries) return false;
  Texts products;
  products.reserve(beginnings.size() * numbers.size());
  for (const std::string& beginning : beginnings) {
    for (const std::string& number : numbers) products.push_back(beginning + number);
  }
  beginnings = std::move(products);
  return true;
}

void append(Texts& beginnings, std::string_view text) {
  for (std::string& beginning : beginnings) beginning += text;
}

/// The hosts of one item, 'rack[1-2]n[08-10]'; empty when it is not one.
Texts hosts_of(std::string_view item) {
  Texts hosts{""};
  while (!item.empty()) {
    const std::size_t bracket = item.find('[');
    append(hosts, item.substr(0, bracket));
    if (bracket == std::string_view::npos) break;
    item.remove_prefix(bracket + 1);
    const std::size_t end = item.find(']');
    if (end == std::string_view::npos) return {};
    const std::vector<std::string> ranges = fields_of(item.substr(0, end));
    item.remove_prefix(end + 1);
    Texts numbers;
    for (const std::string& range : ranges) {
      if (!add_range(range, numbers)) return {};
    }
    if (!multiply(hosts, numbers)) return {};
  }
  return hosts;
}

/// Names have letters, digits, and the signs of host names and addresses.
bool are_names(const Texts& hosts) {
  return !hosts.empty() && std::all_of(hosts.begin(), hosts.end(), [](const std::string& host) {
    return !host.empty() &&
           host.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:") ==
               std::string::npos;
  });
}

/// The end of the first item of `rest`: the next comma outside of brackets, or the end of the text.
std::size_t end_of_item(std::string_view rest) {
  std::size_t end = 0;
  for (bool inside = false; end < rest.size() && (inside || rest[end] != ','); ++end) {
    inside = rest[end] == '[' || (inside && rest[end] != ']');
  }
  return end;
}

}  // namespace

std::optional<std::vector<std::string>> parse_slurm_hosts(std::string_view text) {
  Texts hosts;
  for (bool more = true; more;) {
    const std::size_t end = end_of_item(text);
    const Texts item = hosts_of(trimmed(text.substr(0, end)));
    if (!are_names(item) || hosts.size() + item.size() > kMostSlurmEntries) return std::nullopt;
    hosts.insert(hosts.end(), item.begin(), item.end());
    more = end < text.size();
    text.remove_prefix(more ? end + 1 : end);
  }
  return hosts;
}

std::optional<std::vector<int>> parse_slurm_counts(std::string_view text) {
  std::vector<int> counts;
  for (bool more = true; more;) {
    more = text.find(',') != std::string_view::npos;
    std::string_view times = cut(text, ',');
    const auto count = whole_number<int>(cut(times, '('));
    std::optional<int> repeat = 1;
    if (!times.empty()) {
      if (!times.starts_with('x') || !times.ends_with(')')) return std::nullopt;
      repeat = whole_number<int>(times.substr(1, times.size() - 2));
    }
    if (!count || *count < 0 || !repeat || *repeat < 1) return std::nullopt;
    if (static_cast<std::size_t>(*repeat) > kMostSlurmEntries - counts.size()) return std::nullopt;
    counts.insert(counts.end(), static_cast<std::size_t>(*repeat), *count);
  }
  return counts;
}

}  // namespace lrun::launcher
