#include "cli/verb_table.h"

namespace lrun {
namespace {

using Kind = VerbRequest::Kind;

void json(const std::string&, VerbRequest& request) { request.json = true; }

constexpr VerbOption kStatusOptions[] = {
    {"json", "", "One JSON object for programs.", json},
};

constexpr Verb kVerbs[] = {
    {"status", Kind::kStatus, "what runs here, and each rank's last line",
     "Says of each run that is alive since when it runs, which attempt it is in, and of each rank whether it runs and "
     "what it printed last. RUN names one of them.",
     kStatusOptions},
};

}  // namespace

std::span<const Verb> verb_table() { return kVerbs; }

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

}  // namespace lrun
