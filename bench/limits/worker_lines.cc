// worker_lines MIB LINE CHUNK: a worker that writes MIB MiB to stdout, in lines of LINE bytes, CHUNK bytes a write (0:
// a line a write).
#include <cstdlib>

#include "lines.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto number = [argv](int at) { return static_cast<std::size_t>(std::strtoull(argv[at], nullptr, 10)); };
  return write_lines(STDOUT_FILENO, number(1) << 20U, number(2), number(3)) ? 0 : 1;
}
