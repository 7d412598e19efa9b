#include "process/signal_set.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "process/exit_codes.h"

namespace lrun::inline core {

bool is_ignored(int signal_number) {
  struct sigaction action {};
  ::sigaction(signal_number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

std::vector<int> without_ignored(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::erase_if(numbers, is_ignored);
  return numbers;
}

std::vector<int> block_unless_ignored(std::vector<int> numbers) {
  numbers = without_ignored(std::move(numbers));
  const sigset_t set = signal_set(numbers);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return numbers;
}

void die_of(int signal_number) {
  const struct rlimit no_core {};
  ::setrlimit(RLIMIT_CORE, &no_core);  // SIGQUIT: the core would be of lrun, not of a worker
  ::signal(signal_number, SIG_DFL);
  const sigset_t only = signal_set({signal_number});
  ::raise(signal_number);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::_exit(exit_code_of_signal(signal_number));  // a signal whose default action does not end a process
}

}  // namespace lrun::inline core
