#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/nearest.h"
#include "base/user_error.h"
#include "cli/flags.h"
#include "cli/verb_table.h"

namespace lrun::launcher {
namespace {

[[noreturn]] void refuse_option(const Verb& verb, const std::string& name) {
  std::vector<std::string> known{"--help"};
  for (const VerbOption& option : verb.options) known.push_back("--" + std::string(option.name));
  throw choice_error(fmt::format("unknown option '{}' of 'lrun {}'", name, verb.name), name, known,
                     fmt::format("'lrun {} --help' lists its options", verb.name));
}

/// The option with this name, or the only one that begins so.
const VerbOption& find_option(const Verb& verb, const std::string& name) {
  const std::string folded = folded_name(name);
  const VerbOption* found = nullptr;
  for (const VerbOption& option : verb.options) {
    const std::string candidate = "--" + std::string(option.name);
    if (candidate == folded) return option;
    if (folded.size() > 2 && candidate.starts_with(folded)) found = &option;  // no two begin alike: a test
  }
  if (found == nullptr) refuse_option(verb, name);
  return *found;
}

class VerbReader {
 public:
  VerbReader(const Verb& verb, const std::vector<std::string>& words) : verb_(verb), words_(words) {
    request_.kind = verb.kind;
  }

  VerbRequest run() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (word == "-h" || word == "--help") {
        request_.help = true;
        return std::move(request_);
      }
      if (word.size() > 1 && word.front() == '-') {
        read_option(word);
      } else {
        read_run(word);
      }
    }
    return std::move(request_);
  }

 private:
  void read_option(const std::string& word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const VerbOption& option =
        find_option(verb_, name == "-v" && verb_.kind == VerbRequest::Kind::kDoctor ? "--verbose" : name);
    std::optional<std::string> value;
    if (equals < word.size()) value = word.substr(equals + 1);
    if (option.placeholder.empty() && value) {
      throw UserError("'" + name + "' takes no value, got '" + *value + "'", "write only '" + name + "'");
    }
    if (!option.placeholder.empty() && !value) {
      if (next_ == words_.size()) {
        throw UserError("'" + name + "' needs a value", "write '" + name + " " + std::string(option.placeholder) + "'");
      }
      value = words_[next_++];
    }
    option.apply(value.value_or(""), request_);
  }

  void read_run(const std::string& word) {
    if (word.empty()) throw UserError("the name of RUN is empty", "an unset variable in quotes is an empty word");
    if (!verb_.takes_run) {
      const std::string verb(verb_.name);
      throw UserError("'lrun " + verb + "' takes no argument, got '" + word + "'",
                      "a program of that name is run with 'lrun -- " + verb + "'");
    }
    if (!request_.run.empty()) {
      const std::string verb(verb_.name);
      throw UserError("'lrun " + verb + "' takes one RUN, got '" + request_.run + "' and '" + word + "'",
                      "a program of that name is run with 'lrun -- " + verb + "'");
    }
    request_.run = word;
  }

  const Verb& verb_;
  const std::vector<std::string>& words_;
  std::size_t next_ = 0;
  VerbRequest request_;
};

}  // namespace

VerbRequest parse_verb(const Verb& verb, const std::vector<std::string>& words) {
  return VerbReader(verb, words).run();
}

}  // namespace lrun::launcher
