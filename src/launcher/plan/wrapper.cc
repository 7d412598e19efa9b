#include "plan/wrapper.h"

#include <algorithm>
#include <array>

#include "base/split.h"
#include "base/user_error.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

std::optional<std::string> value_of(char macro, const WrapperFacts& facts) {
  switch (macro) {
    case 'r':
      return std::to_string(facts.rank);
    case 'l':
      return std::to_string(facts.local_rank);
    case 'a':
      return std::to_string(facts.attempt);
    case 'h':
      return facts.host;
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

std::string expand_word(const std::string& word, const WrapperFacts& facts) {
  std::string result;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const auto value = word[i] == '%' && i + 1 < word.size() ? value_of(word[i + 1], facts) : std::nullopt;
    if (value) ++i;
    result += value ? *value : std::string(1, word[i]);
  }
  return result;
}

}  // namespace

std::optional<Wrapper::Ranks> parse_ranks(std::string_view text) {
  Wrapper::Ranks ranks;
  for (const std::string_view field : fields_of(text)) {
    const std::size_t dash = std::min(field.find('-'), field.size());
    const auto first = natural_number(field.substr(0, dash));
    const auto last = dash == field.size() ? first : natural_number(field.substr(dash + 1));
    if (!first || !last || *first > *last) return std::nullopt;
    ranks.emplace_back(*first, *last);
  }
  return ranks;
}

bool has_rank(const Wrapper::Ranks& ranks, int rank) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [rank](const auto& range) { return range.first <= rank && rank <= range.second; });
}

const Wrapper* wrapper_of(const std::vector<Wrapper>& wrappers, int rank) {
  const auto own = std::find_if(wrappers.rbegin(), wrappers.rend(),
                                [&](const Wrapper& wrapper) { return has_rank(wrapper.ranks, rank); });
  if (own != wrappers.rend()) return &*own;
  const auto all =
      std::find_if(wrappers.rbegin(), wrappers.rend(), [](const Wrapper& wrapper) { return wrapper.ranks.empty(); });
  return all == wrappers.rend() ? nullptr : &*all;
}

bool enters_container(const std::vector<Wrapper>& wrappers) {
  constexpr std::array<std::string_view, 9> kRuntimes{"apptainer", "singularity", "podman",  "docker", "nerdctl",
                                                      "ch-run",    "enroot",      "shifter", "udocker"};
  const auto is_runtime = [&](std::string_view word) {
    word.remove_prefix(word.rfind('/') + 1);
    return std::find(kRuntimes.begin(), kRuntimes.end(), word) != kRuntimes.end();
  };
  return std::any_of(wrappers.begin(), wrappers.end(), [&](const Wrapper& wrapper) {
    return std::any_of(wrapper.words.begin(), wrapper.words.end(), is_runtime);
  });
}

void check_wrappers(const std::vector<Wrapper>& wrappers, int world_size) {
  for (const Wrapper& wrapper : wrappers) {
    for (const auto& [first, last] : wrapper.ranks) {
      if (last < world_size) continue;
      throw UserError("'" + wrapper.origin + "': there is no rank " + std::to_string(last),
                      "this run has the ranks 0 to " + std::to_string(world_size - 1));
    }
  }
}

std::vector<std::string> expand_wrapper(const std::vector<std::string>& words, const WrapperFacts& facts) {
  std::vector<std::string> expanded;
  expanded.reserve(words.size());
  for (const std::string& word : words) expanded.push_back(expand_word(word, facts));
  return expanded;
}

}  // namespace lrun::launcher
