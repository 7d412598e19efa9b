#include "inspect/python_frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "inspect/elf_symbols.h"
#include "inspect/python_layout.h"
#include "support/made_up_python.h"

namespace lrun::launcher {
namespace {

using test::MadeUpMemory;
using test::MadeUpPython;
using Frames = std::vector<StackFrame>;

/// Counts the reads.
MemoryReader reader_of(const MadeUpMemory& memory, int& reads) {
  return MemoryReader([&memory, &reads](std::span<const MemoryPiece> pieces) {
    ++reads;
    return std::all_of(pieces.begin(), pieces.end(), [&](const MemoryPiece& piece) { return memory.read(piece); });
  });
}

PythonPlace place_in(MemoryReader& memory) {
  const auto symbols = ElfSymbols::at(memory, MadeUpPython::kLibrary);
  return symbols ? find_python(memory, *symbols).value_or(PythonPlace()) : PythonPlace();
}

class PythonFramesTest : public ::testing::Test {
 protected:
  [[nodiscard]] PythonPlace place() { return place_in(memory_); }
  [[nodiscard]] std::vector<PythonThread> threads() {
    return python_threads(memory_, place()).value_or(std::vector<PythonThread>());
  }
  [[nodiscard]] std::optional<Frames> stack(std::size_t thread = 0) {
    return python_stack(memory_, place(), threads().at(thread));
  }

  MadeUpPython python_;
  int reads_ = 0;
  MemoryReader memory_ = reader_of(python_, reads_);
};

TEST(ElfSymbols, AreFoundByTheHashTableInMemory) {
  for (const bool relative : {false, true}) {
    MadeUpMemory image;
    image.put_library(0x4000'0000, {{"one", 0x4000'1111}, {"two", 0x4000'2222}}, relative);
    int reads = 0;
    MemoryReader memory = reader_of(image, reads);
    const auto symbols = ElfSymbols::at(memory, 0x4000'0000);
    ASSERT_TRUE(symbols);
    EXPECT_EQ(symbols->find(memory, "one"), 0x4000'1111U);
    EXPECT_EQ(symbols->find(memory, "two"), 0x4000'2222U);
    EXPECT_EQ(symbols->find(memory, "tw"), 0U);
    EXPECT_EQ(symbols->find(memory, "three"), 0U);
  }
}

TEST(ElfSymbols, AreNotSearchedInAnythingElse) {
  MadeUpMemory image;
  image.fill(0x1000, 4096);
  int reads = 0;
  MemoryReader memory = reader_of(image, reads);
  EXPECT_FALSE(ElfSymbols::at(memory, 0x1000));
  EXPECT_FALSE(ElfSymbols::at(memory, 0));
}

std::string problem_of_python(std::uint64_t version, std::map<std::string, Address> more = {}) {
  const MadeUpPython python(version, std::move(more));
  int reads = 0;
  MemoryReader memory = reader_of(python, reads);
  return place_in(memory).problem;
}

TEST(PythonPlace, IsRefusedWhereItsStructuresAreNotKnown) {
  EXPECT_EQ(problem_of_python(0x030b02f0), "");
  EXPECT_EQ(problem_of_python(0x030c00f0), "");
  EXPECT_EQ(problem_of_python(0x031000f0), "Python 3.16 is not known to this lrun");
  EXPECT_EQ(problem_of_python(0x040000f0), "Python 4.0 is not known to this lrun");
  EXPECT_EQ(problem_of_python(0x030c00c1), "Python 3.12 is not a final release");
  EXPECT_EQ(problem_of_python(0x030b02f0, {{"_Py_NegativeRefcount", 0x7f0000000001}}), "Python is a debug build");
  EXPECT_EQ(problem_of_python(0x030d00f0), "Python tells two versions of itself") << "3.13 has a table of offsets";
}

TEST(PythonPlace, IsOlderThanThreeNineWithoutANewerSymbol) {
  MadeUpMemory image;
  const std::map<std::string, Address> old{{"_PyRuntime", MadeUpPython::kRuntime}};
  image.put_library(MadeUpPython::kLibrary, old);
  int reads = 0;
  MemoryReader memory = reader_of(image, reads);
  EXPECT_EQ(place_in(memory).problem, "Python is older than 3.9");
  image.put_library(MadeUpPython::kLibrary,
                    {{"_PyRuntime", MadeUpPython::kRuntime}, {"PyModule_AddType", MadeUpPython::kRuntime}});
  EXPECT_EQ(place_in(memory).minor, 9);
}

TEST(PythonPlace, DoesNotBelieveImpossibleOffsets) {
  MadeUpPython python(0x030d00f0);
  int reads = 0;
  MemoryReader memory = reader_of(python, reads);
  python.put_bytes(MadeUpPython::kRuntime, "xdebugpy", 8);
  python.put(MadeUpPython::kRuntime + 8, std::uint64_t{0x030d00f0});
  EXPECT_EQ(place_in(memory).problem, "Python tells impossible offsets of itself") << "all are zero";
  const auto word = [&](Address index, std::uint64_t value) { python.put(MadeUpPython::kRuntime + 8 * index, value); };
  word(28, 88);   // bytes of a frame
  word(31, 56);   // instruction
  word(33, 70);   // owner
  word(43, 200);  // bytecode
  EXPECT_EQ(place_in(memory).problem, "");
  word(31, 84);
  EXPECT_EQ(place_in(memory).problem, "Python tells impossible offsets of itself") << "beyond the frame";
  word(31, 56);
  word(43, ~std::uint64_t{0});
  EXPECT_EQ(place_in(memory).problem, "Python tells impossible offsets of itself");
}

TEST_F(PythonFramesTest, AreFunctionFileAndLineOfEveryCall) {
  python_.add_thread({python_.add_code("/usr/lib/python3/dist-packages/torch/distributed_c10d.py", "all_reduce", 3075),
                      python_.add_code("/home/me/train.py", "step", 7),
                      python_.add_code("<frozen runpy>", "_run_code", 88)});
  EXPECT_EQ(stack(), (Frames{{"all_reduce", "distributed_c10d.py:3075", true},
                             {"step", "train.py:7"},
                             {"_run_code", "<frozen runpy>:88", true}}));
}

TEST_F(PythonFramesTest, OfTheMainThreadComeFirst) {
  const Address main = python_.add_thread({python_.add_code("a.py", "main", 1)});
  const Address other = python_.add_thread({python_.add_code("a.py", "other", 2)});
  python_.put(MadeUpPython::kRuntime + 576, other);  // holds the GIL
  const std::vector<PythonThread> found = threads();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].state, main);
#if defined(__x86_64__)
  EXPECT_FALSE(found[0].holds_gil);
  EXPECT_TRUE(found[1].holds_gil);
#endif
  EXPECT_EQ(stack(1), (Frames{{"other", "a.py:2"}}));
}

TEST_F(PythonFramesTest, AreEmptyOfAThreadThatRunsNoPython) {
  python_.add_thread({});
  EXPECT_EQ(stack(), Frames());
}

TEST_F(PythonFramesTest, AreLimited) {
  python_.add_thread(std::vector<Address>(2000, python_.add_code("a.py", "deep", 5)));
  const auto frames = stack();
  ASSERT_TRUE(frames);
  EXPECT_EQ(frames->size(), 64U);
}

TEST_F(PythonFramesTest, AreNotReadInARing) {
  python_.add_thread({python_.add_code("a.py", "f", 1), python_.add_code("a.py", "g", 2)});
  python_.put(python_.frames[0] + 48, python_.frames[1]);
  const std::vector<PythonThread> found = threads();
  reads_ = 0;
  EXPECT_EQ(python_stack(memory_, place(), found.at(0)), std::nullopt);
  EXPECT_LT(reads_, 100);
}

TEST_F(PythonFramesTest, OfARingOfThreadsAreLimited) {
  const Address thread = python_.add_thread({});
  python_.put(thread + 8, thread);
  EXPECT_EQ(python_threads(memory_, place()), std::nullopt);
}

TEST_F(PythonFramesTest, AreNotReadWhileAThreadIsGoing) {
  python_.add_thread({});
  const Address gone = python_.add_thread({});
  python_.put(gone + 16, Address{0x1234});  // its memory has another use
  EXPECT_EQ(python_threads(memory_, place()), std::nullopt) << "the main thread stands behind it";
}

TEST_F(PythonFramesTest, AreOfCodeObjectsOnly) {
  const Address code = python_.add_code("a.py", "f", 1);
  python_.add_thread({code});
  EXPECT_TRUE(stack());
  python_.put(code + 8, Address{0x1234});
  EXPECT_FALSE(stack());
}

TEST_F(PythonFramesTest, AreReadTwiceAndMustBeTheSame) {
  python_.add_thread({python_.add_code("a.py", "f", 1), python_.add_code("a.py", "g", 2)});
  const PythonPlace place = this->place();
  const PythonThread thread = threads().at(0);
  bool moves = false;
  const auto before_the_second = [&](const std::function<void()>& change) {
    moves = true;
    int reads = 0;
    MemoryReader still = reader_of(python_, reads);
    MemoryReader moving([&](std::span<const MemoryPiece> pieces) {
      if (pieces.size() > 1 && moves) change();
      moves = moves && pieces.size() == 1;
      return still.read(pieces);
    });
    return python_stack(moving, place, thread);
  };
  EXPECT_TRUE(before_the_second([] {}));
  EXPECT_TRUE(before_the_second([&] { python_.put(python_.frames[1] + 56, Address{0x100}); }))
      << "the innermost may go on in its function";
  EXPECT_FALSE(before_the_second([&] { python_.put(python_.frames[0] + 56, Address{0x100}); }));
  EXPECT_TRUE(before_the_second([] {}));
  EXPECT_FALSE(before_the_second([&] { python_.put(python_.frames[1] + 48, Address{0}); }));
}

TEST_F(PythonFramesTest, HaveNamesInUtf8) {
  const Address latin = python_.take(128);
  python_.put(latin + 16, std::uint64_t{2});
  python_.put(latin + 32, std::uint32_t{1U << 2U | 1U << 5U});
  python_.put_bytes(latin + 72, "f\xfc", 2);
  const Address wide = python_.take(128);
  python_.put(wide + 16, std::uint64_t{2});
  python_.put(wide + 32, std::uint32_t{2U << 2U | 1U << 5U});
  python_.put(wide + 72, std::array<std::uint16_t, 2>{0x6559, 'x'});
  const Address endless = python_.take(128);
  python_.put(endless + 16, ~std::uint64_t{0});
  python_.put(endless + 32, std::uint32_t{4U << 2U | 1U << 5U});
  python_.add_thread({python_.add_code("a.py", latin, 1), python_.add_code("a.py", wide, 2),
                      python_.add_code("a.py", endless, 3), python_.add_code("a.py", Address{0x77}, 4)});
  EXPECT_EQ(stack(), (Frames{{"fü", "a.py:1"}, {"教x", "a.py:2"}, {"??", "a.py:3"}, {"??", "a.py:4"}}));
}

TEST(MemoryReader, ReadsALimitedNumberOfTimes) {
  MemoryReader memory([](std::span<const MemoryPiece>) { return true; });
  int reads = 0;
  for (char byte = 0; reads < 10'000'000 && memory.read(0, &byte, 1);) ++reads;
  EXPECT_EQ(reads, MemoryReader::kMostReads);
}

TEST(MemoryReader, ReadsALimitedNumberOfBytes) {
  MemoryReader memory([](std::span<const MemoryPiece>) { return true; });
  EXPECT_EQ(memory.bytes(0, MemoryReader::kMostBytes).size(), MemoryReader::kMostBytes);
  EXPECT_TRUE(memory.bytes(0, MemoryReader::kMostBytes + 1).empty());
  EXPECT_TRUE(memory.bytes(0, ~std::size_t{0}).empty());
}

}  // namespace
}  // namespace lrun::launcher
