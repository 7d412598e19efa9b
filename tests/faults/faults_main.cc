#include <gtest/gtest.h>

#include <csignal>
#include <iostream>

#include "faults/settings.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  lrun::test::settings().program = argv[0];
  for (int i = 1; i < argc; ++i) {
    if (lrun::test::take(argv[i])) continue;
    std::cerr << "unknown argument '" << argv[i] << "'\n";
    return 2;
  }
  // Signals that a shell's background job ignores would be ignored by lrun as well.
  for (const int number : {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE}) std::signal(number, SIG_DFL);
  return RUN_ALL_TESTS();
}
