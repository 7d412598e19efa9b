#include "plan/wrapper.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

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

std::vector<std::string> expand_wrapper(const std::vector<std::string>& words, const WrapperFacts& facts) {
  std::vector<std::string> expanded;
  expanded.reserve(words.size());
  for (const std::string& word : words) expanded.push_back(expand_word(word, facts));
  return expanded;
}

}  // namespace lrun::launcher
