#include "runtime/launch/rank_main.h"

#include <cxxabi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>

#include "runtime/launch/returned_state.h"

namespace lrun::detail {
namespace {

bool in_rank = false;
std::optional<int> exit_code;  // of a rank whose exit handlers run

std::string type_name(const std::exception& error) {
  int status = 0;
  const char* const mangled = typeid(error).name();
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return name ? name.get() : mangled;
}

/// As the C++ runtime prints an uncaught exception. Cuts off LibTorch's call stack, which would displace the rest.
std::string describe_error(const std::exception& error) {
  std::string text = type_name(error) + ": " + error.what();
  text.resize(std::min(text.find("\nException raised from "), text.size()));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

void flush() {
  std::cout.flush();
  std::clog.flush();
  std::fflush(nullptr);
}

}  // namespace

bool is_in_rank() { return in_rank; }

void end_rank(int code) {
  exit_code = code;
  std::exit(code);
}

void end_where_exiting() {
  if (exit_code) ::_exit(*exit_code);
}

int run_rank(LaunchBoard& board, int local_rank, const std::function<c10::IValue()>& function,
             const torch::nn::Module* module) {
  using Stage = LaunchBoard::Stage;
  const auto failed = [&](std::string_view text) {
    board.set_error(local_rank, text);
    board.set_stage(local_rank, Stage::kThrew);
    flush();
    return 1;
  };
  in_rank = true;
  board.set_stage(local_rank, Stage::kReached);
  try {
    const c10::IValue result = function();
    if (local_rank == 0) pack(result, module, [&board](std::string_view bytes) { board.append(bytes); });
    flush();
    board.set_stage(local_rank, Stage::kDone);
    return 0;
  } catch (const std::exception& error) {
    return failed(describe_error(error));
  } catch (...) {
    return failed("an exception that is no std::exception");
  }
}

}  // namespace lrun::detail
