// Prints the tables that documents are held to, one row a line, fields separated by tabs:
//   flag      now|later  short names  long names  choices  variables   group  word: the next one is its value
//   contract  NAME
//   verb      NAME  options     their short names
//   horovodrun  names of an option that only horovodrun has
// With the argument 'help' or 'short_help' the text of --help or -h. An empty field is '.'.
#include <cstdio>
#include <string>
#include <string_view>

#include "cli/flags.h"
#include "cli/help.h"
#include "cli/horovodrun_options.h"
#include "cli/verb_table.h"
#include "plan/horovod_environment.h"
#include "plan/worker_environment.h"

namespace {

std::string field(const std::string& text) { return text.empty() ? "." : text; }

void print_row(const lrun::launcher::Flag& flag) {
  std::string shorts;
  for (const std::string_view name : lrun::launcher::words_of(flag.short_names)) shorts += " -" + std::string(name);
  std::string longs;
  for (const std::string& name : lrun::launcher::long_names_of(flag)) longs += " " + name;
  std::string variables = lrun::launcher::lrun_variable_of(flag);
  if (const std::string torchruns = lrun::launcher::torchrun_variable_of(flag); !torchruns.empty()) {
    variables += " " + torchruns;
  }
  const bool takes_word = flag.value == lrun::launcher::ValueKind::kRequired;
  std::printf("flag\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", lrun::launcher::in_this_version(flag) ? "now" : "later",
              field(shorts.substr(shorts.empty() ? 0 : 1)).c_str(), longs.substr(1).c_str(),
              field(std::string(flag.choices)).c_str(), field(variables).c_str(),
              std::string(lrun::launcher::title_of(flag.group)).c_str(), takes_word ? "word" : ".");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  if (wanted == "help" || wanted == "short_help") {
    std::fputs((wanted == "help" ? lrun::launcher::long_help() : lrun::launcher::short_help()).c_str(), stdout);
    return 0;
  }
  for (const lrun::launcher::Flag& flag : lrun::launcher::flag_table()) print_row(flag);
  for (const lrun::launcher::ContractVariable& variable : lrun::launcher::kContract) {
    std::printf("contract\t%s\n", std::string(variable.name).c_str());
  }
  for (const lrun::launcher::ContractVariable& variable : lrun::launcher::kHorovodContract) {
    std::printf("contract\t%s\n", std::string(variable.name).c_str());
  }
  for (const lrun::launcher::HorovodrunOption& option : lrun::launcher::horovodrun_options()) {
    std::printf("horovodrun\t%s\n", std::string(option.names).c_str());
  }
  for (const lrun::launcher::Verb& verb : lrun::launcher::verb_table()) {
    std::string options;
    std::string letters;
    for (const lrun::launcher::VerbOption& option : verb.options) {
      options += " --" + std::string(option.name);
      if (option.letter != '\0') letters += std::string{' ', '-', option.letter};
    }
    std::printf("verb\t%s\t%s\t%s\n", std::string(verb.name).c_str(), field(options).c_str(), field(letters).c_str());
  }
  return 0;
}
