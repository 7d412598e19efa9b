// worker_stamp FILE: a worker that notes when it ran, and ends.
#include "stamp.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return append_stamp(argv[1], "") ? 0 : 1;
}
