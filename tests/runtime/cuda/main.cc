// The tests' program, which is also a program that starts its ranks itself: those execute it again.
#include <gtest/gtest.h>

#include <string_view>

#include "runtime/cuda/launching_program.h"

int main(int count, char** arguments) {
  using namespace lrun::detail::testing;  // NOLINT: of the one function
  if (count == 4 && std::string_view(arguments[1]) == kLaunchingProgram) {
    return run_launching_program(arguments[2], arguments[3]);
  }
  ::testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
