#include "commands/completion_script.h"

#include "completion_texts.h"

namespace lrun::launcher {

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return kBashCompletions;
  if (shell == "zsh") return kZshCompletions;
  return shell == "fish" ? kFishCompletions : std::string_view();
}

}  // namespace lrun::launcher
