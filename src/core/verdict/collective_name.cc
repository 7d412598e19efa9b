#include "verdict/collective_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace lrun::inline core {
namespace {

/// The name in lower case without underscores → the usual name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kCollectives{{
    {"allreduce", "all_reduce"},
    {"allreducecoalesced", "all_reduce"},
    {"ncclallreduce", "all_reduce"},
    {"allgather", "all_gather"},
    {"allgatherbase", "all_gather"},
    {"allgatherintotensor", "all_gather"},
    {"allgatherobject", "all_gather"},
    {"ncclallgather", "all_gather"},
    {"reducescatter", "reduce_scatter"},
    {"reducescatterbase", "reduce_scatter"},
    {"reducescattertensor", "reduce_scatter"},
    {"ncclreducescatter", "reduce_scatter"},
    {"broadcast", "broadcast"},
    {"broadcastobjectlist", "broadcast"},
    {"ncclbroadcast", "broadcast"},
    {"alltoall", "all_to_all"},
    {"alltoallsingle", "all_to_all"},
    {"allocatebucket", "allocate_bucket"},
    {"barrier", "barrier"},
    {"monitoredbarrier", "barrier"},
    {"storebasedbarrier", "barrier"},
    {"initprocessgroup", kInitProcessGroup},
}};

bool is_name_byte(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
         letter == '_';
}

}  // namespace

std::string_view plain_name(std::string_view function) {
  int depth = 0;
  std::size_t begin = 0;
  std::size_t end = function.size();
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char letter = function[i];
    if (letter == '(' && depth == 0 && i > begin && !function.substr(i).starts_with("(anonymous namespace)")) {
      end = i;
      break;
    }
    if (letter == '<' || letter == '(' || letter == '{') ++depth;
    if ((letter == '>' || letter == ')' || letter == '}') && depth > 0) --depth;
    if (depth == 0 && (letter == ' ' || (letter == ':' && i > 0 && function[i - 1] == ':'))) begin = i + 1;
  }
  const std::string_view name = function.substr(begin, end - std::min(begin, end));
  return name.substr(0, name.find('<'));
}

std::string collective_name(std::string_view function) {
  std::string folded;
  for (const char letter : plain_name(function)) {
    if (letter != '_') folded += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  for (const auto& [spelled, name] : kCollectives) {
    if (folded == spelled) return std::string(name);
  }
  return {};
}

std::string collective_in(std::string_view text) {
  while (!text.empty()) {
    const auto length =
        static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_name_byte) - text.begin());
    if (std::string name = collective_name(text.substr(0, length)); !name.empty()) return name;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return {};
}

}  // namespace lrun::inline core
