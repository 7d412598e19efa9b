#include "runtime/ddp/freed_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace lrun::detail {
namespace {

constexpr std::size_t kPieces = 16;
constexpr std::size_t kPiece = 1 << 20;
constexpr long kPages = kPieces * kPiece / 4096;

void use_memory_once() {
  std::vector<std::unique_ptr<char[]>> pieces;
  for (std::size_t index = 0; index < kPieces; ++index) {
    pieces.push_back(std::make_unique_for_overwrite<char[]>(kPiece));
    std::memset(pieces.back().get(), 1, kPiece);
  }
}

long faults_of_this_thread() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

TEST(FreedMemory, StaysWithTheThreadThatUsesItAgain) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
  GTEST_SKIP() << "another allocator than glibc's";
#endif
  for (const char* const name : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"}) {
    if (std::getenv(name) != nullptr) GTEST_SKIP() << name << " is set: malloc is left as the user wants it";
  }
  keep_freed_memory();
  long faults = 0;
  std::thread([&] {
    for (int round = 0; round < 3; ++round) use_memory_once();
    const long before = faults_of_this_thread();
    for (int round = 0; round < 10; ++round) use_memory_once();
    faults = faults_of_this_thread() - before;
  }).join();
  EXPECT_LT(faults, kPages) << "of " << 10 * kPages << " that ten rounds in fresh memory take";
}

}  // namespace
}  // namespace lrun::detail
