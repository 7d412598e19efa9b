// Reduces for ever: a worker to be killed in the middle of an all-reduce. With 'fewer' rank 1 leaves its loop before
// the others do, with 'fault' it reads where nothing is, with 'hang' it waits for a batch that never comes.
#include <ATen/ops/ones.h>
#include <lrun/session.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <limits>
#include <string_view>

namespace {

/// Not known to the compiler.
int* nowhere() { return std::bit_cast<int*>(std::strtoul("10", nullptr, 16)); }

int read_at(const volatile int* place) { return *place; }

}  // namespace

/// Visible, so that a program without its symbol table names it, too.
[[gnu::noinline, gnu::visibility("default")]] int load_batch() {
  int ends[2] = {};
  char byte = 0;
  return ::pipe(ends) == 0 ? static_cast<int>(::read(ends[0], &byte, 1)) + 1 : 1;
}

int main(int count, char** arguments) {
  const std::string_view mode = count > 1 ? arguments[1] : "";
  try {
    lrun::Session session(lrun::SessionOptions{.banner = false});
    const bool differs = session.rank() == 1;
    const at::Tensor values = at::ones({1 << 16});
    session.barrier();
    std::cout << "reducing" << std::endl;
    if (mode == "fault" && differs) return read_at(nowhere());
    if (mode == "hang" && differs) return load_batch();
    const int steps = mode == "fewer" && differs ? 3 : std::numeric_limits<int>::max();
    at::Tensor result = values;
    for (int step = 0; step < steps; ++step) result = session.all_reduce(result, lrun::ReduceOp::kMax);
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
