#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "logs/log_router.h"
#include "support/log_test_support.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

Pipe make_socket() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

/// A router whose stdout and stderr are any two descriptors.
class ConsoleTest : public ::testing::Test {
 protected:
  LogRouter& router(int out, int err, LogOptions options = {}) {
    options.files = files;
    options.stdout_fd = out;
    options.stderr_fd = err;
    router_ = std::make_unique<LogRouter>(loop, options);
    router_->set_events({[this](int) { loop.stop(); }, [this](LogStream stream) { closed.push_back(stream); },
                         [this](const std::string& text) { warnings.push_back(text); }});
    return *router_;
  }

  Fd stream_of(int rank, LogStream stream = kOut) {
    Pipe pipe = make_pipe();
    router_->add_stream(rank, rank, stream, std::move(pipe.read));
    return std::move(pipe.write);
  }

  /// Two ranks flood a console whose reader does nothing at first; then it reads, and must see everything.
  void expect_that_a_stopped_reader_loses_nothing(Pipe console) {
    const int flags = ::fcntl(console.write.get(), F_GETFL);
    router(console.write.get(), console.write.get(), {.console_bytes = 100'000});
    const std::string text = numbered_lines(15'000);
    Writer first(loop, stream_of(0), text);
    Writer second(loop, stream_of(1, kErr), text);
    run_until_nobody_can_write(first, second);
    EXPECT_LT(first.written + second.written, text.size()) << "reading goes on although the console is stopped";

    Reader reader(loop, std::move(console.read));
    first.closed = [&] { router_->worker_ended(0); };
    second.closed = [&] { router_->worker_ended(1); };
    reader.read_until([&](const std::string& seen) { return seen.size() == 2 * (text.size() + 15'000 * 4); });
    EXPECT_TRUE(lines_of("[0] ", reader.text) == text) << "lines of rank 0 are lost or torn";
    EXPECT_TRUE(lines_of("[1] ", reader.text) == text) << "lines of rank 1 are lost or torn";
    EXPECT_EQ(::fcntl(console.write.get(), F_GETFL), flags) << "the shared descriptor must stay as it was";
    EXPECT_TRUE(closed.empty());
    EXPECT_TRUE(warnings.empty());
  }

  void run_until_nobody_can_write(Writer& first, Writer& second) {
    EventLoop::Timer quiet;
    const auto restart = [&] { quiet = loop.after(50ms, [&] { loop.stop(); }); };
    first.progressed = second.progressed = restart;
    restart();
    loop.run();
    first.progressed = second.progressed = {};
  }

  IgnoreBrokenPipes ignore_broken_pipes_;
  EventLoop loop;
  bool files = false;
  std::vector<LogStream> closed;
  std::vector<std::string> warnings;
  std::unique_ptr<LogRouter> router_;
};

TEST_F(ConsoleTest, AStoppedPipeLosesNothing) { expect_that_a_stopped_reader_loses_nothing(make_pipe()); }
TEST_F(ConsoleTest, AStoppedSocketLosesNothing) { expect_that_a_stopped_reader_loses_nothing(make_socket()); }
TEST_F(ConsoleTest, AStoppedTerminalLosesNothing) { expect_that_a_stopped_reader_loses_nothing(make_terminal()); }

TEST_F(ConsoleTest, ADescriptorThatCannotBeOpenedAgainLosesNothing) {
  Pipe terminal = make_terminal();
  expect_that_a_stopped_reader_loses_nothing({std::move(terminal.write), std::move(terminal.read)});
}

TEST_F(ConsoleTest, AStoppedTerminalBlocksNobodyWhereFilesHaveEverything) {
  const TemporaryFolder folder;
  Pipe terminal = make_terminal();
  files = true;
  router(terminal.write.get(), terminal.write.get(), {.console_bytes = 100'000});
  router_->open_files(temporary_folder(), folder.path().filename());
  const std::string text = numbered_lines(15'000);
  Writer writer(loop, stream_of(0), text);
  writer.closed = [&] { router_->worker_ended(0); };
  const TimeLimit limit(loop);
  loop.run();  // to the end of the worker, although nobody reads
  ASSERT_FALSE(limit.expired());
  EXPECT_TRUE(content_of(folder.path() / "0" / "stdout.log") == text) << "the file lacks something";

  Reader reader(loop, std::move(terminal.read));
  reader.read_until_it_says(" left out here, all in '" + folder.path().string() + "'\n");
  const std::size_t gap = reader.text.rfind("... ");
  const std::string shown = lines_of("[0] ", reader.text.substr(0, gap));
  EXPECT_TRUE(text.starts_with(shown)) << "a line before the gap is torn";
  const auto lines_shown = std::count(shown.begin(), shown.end(), '\n');
  EXPECT_EQ(reader.text.substr(gap, reader.text.find(" lines", gap) - gap),
            "... " + std::to_string(15'000 - lines_shown));
  EXPECT_GT(lines_shown, 500);
  router_->print("lrun: the end");
  reader.read_until_it_says("lrun: the end\n");
}

TEST_F(ConsoleTest, WhatLrunSaysItselfIsBoundedToo) {
  Pipe console = make_pipe();
  constexpr std::size_t kLimit = 100'000;
  constexpr int kLines = 50'000;
  router(console.write.get(), console.write.get(), {.console_bytes = kLimit});
  for (int i = 0; i < kLines; ++i) router_->print("lrun: warning: again\n");
  Reader reader(loop, std::move(console.read));
  reader.read_until_it_says(" left out here\n");
  const auto shown = std::count(reader.text.begin(), reader.text.end(), '\n') - 1;
  EXPECT_LT(reader.text.size(), 4 * kLimit) << "what the pipe held, and the queue";
  EXPECT_NE(reader.text.find("\n... " + std::to_string(kLines - shown) + " lines of lrun itself left out here\n"),
            std::string::npos)
      << reader.text.substr(reader.text.size() - 100);
  router_->print("lrun: the end");
  reader.read_until_it_says("lrun: the end\n");
}

TEST_F(ConsoleTest, NoLineIsLeftOutWhereSomeAreNowhereElse) {
  const TemporaryFolder folder;
  Pipe terminal = make_terminal();
  files = true;
  router(terminal.write.get(), terminal.write.get(), {.console_bytes = 100'000});
  Pipe pipe = make_pipe();
  router_->add_stream(1, 1, kOut, std::move(pipe.read), {.file = false});
  router_->open_files(temporary_folder(), folder.path().filename());
  const std::string text = numbered_lines(15'000);
  Writer first(loop, stream_of(0), text);
  Writer second(loop, std::move(pipe.write), text);
  run_until_nobody_can_write(first, second);
  EXPECT_LT(first.written + second.written, text.size()) << "ranks wait for the terminal";
}

TEST_F(ConsoleTest, AFloodDoesNotStarveAnothersLine) {
  Pipe console = make_pipe();
  router(console.write.get(), console.write.get());
  Reader reader(loop, std::move(console.read));
  Writer writer(loop, stream_of(0), numbered_lines(1000), 100'000);
  reader.read_until([](const std::string& text) { return text.size() > 100'000; });
  const Fd other = stream_of(1);
  put(other, "I am here\n");
  const std::size_t before = writer.written;
  reader.read_until_it_says("[1] I am here\n");
  EXPECT_LT(writer.written - before, 4'000'000U) << "bytes of the flood that went first";
}

TEST_F(ConsoleTest, AClosedConsoleIsToldOnceAndDropsSilently) {
  Pipe console = make_pipe();
  router(console.write.get(), console.write.get());
  console.read.reset();
  const Fd worker = stream_of(0);
  for (int i = 0; i < 3; ++i) {
    put(worker, "nobody reads this\n");
    router_->print("nor this");
  }
  router_->worker_ended(0);
  EXPECT_EQ(closed, std::vector<LogStream>{kOut});
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(router_->tail(0).size(), 3U) << "the verdict still knows";
  EXPECT_TRUE(router_->flush(0ms));
}

TEST_F(ConsoleTest, AReaderThatLeavesWhileAllIsStoppedFreesTheWorkers) {
  Pipe console = make_pipe();
  router(console.write.get(), console.write.get(), {.console_bytes = 100'000});
  const std::string text = numbered_lines(15'000);
  Writer first(loop, stream_of(0), text);
  Writer second(loop, stream_of(1), text);
  run_until_nobody_can_write(first, second);
  ASSERT_LT(first.written, text.size());
  console.read.reset();
  int open = 2;
  first.closed = second.closed = [&] {
    if (--open == 0) loop.stop();
  };
  const TimeLimit limit(loop);
  loop.run();
  EXPECT_EQ(open, 0) << "both could write to the end";
  EXPECT_EQ(closed.size(), 1U);
}

TEST_F(ConsoleTest, ADescriptorThatIsNotOpenIsAClosedConsole) {
  Pipe console = make_pipe();
  const int number = console.write.get();
  console.write.reset();
  router(number, number);
  router_->print("hello");
  EXPECT_EQ(closed, std::vector<LogStream>{kErr});
}

TEST_F(ConsoleTest, AFullDiskBehindTheConsoleIsOneWarning) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  router(full.get(), full.get());
  router_->print("one");
  router_->print("two");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0], "standard output cannot be written: No space left on device; lines are lost");
  EXPECT_TRUE(closed.empty());
}

TEST_F(ConsoleTest, AFileIsWrittenWhereOthersGoOn) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "out.txt";
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  router(file.get(), file.get());
  put(file, "before\n");
  router_->print("lrun");
  put(file, "after\n");
  EXPECT_EQ(content_of(path), "before\nlrun\nafter\n");
}

TEST_F(ConsoleTest, OurOwnLinesComeAfterWhatIsQueuedAndNeverInsideAWorkersLine) {
  Pipe console = make_pipe();
  router(console.write.get(), console.write.get());
  Reader reader(loop, std::move(console.read));
  const Fd worker = stream_of(0);
  put(worker, "unfinished");
  put(stream_of(1), "whole\n");
  reader.read_until_it_says("whole\n");
  router_->print("lrun: note: something");
  put(worker, " line\n");
  reader.read_until_it_says("unfinished line\n");
  EXPECT_EQ(reader.text, "[1] whole\nlrun: note: something\n[0] unfinished line\n");
}

TEST_F(ConsoleTest, ColoursThePrefixOnlyOnATerminal) {
  Pipe terminal = make_terminal();
  Pipe pipe = make_pipe();
  router(terminal.write.get(), pipe.write.get(), {.colour = true});
  Reader out(loop, std::move(terminal.read));
  Reader err(loop, std::move(pipe.read));
  put(stream_of(0), "a\n");
  put(stream_of(0, kErr), "b\n");
  out.read_until_it_says("a\n");
  err.read_until_it_says("b\n");
  EXPECT_EQ(out.text, "\x1b[36m[0]\x1b[0m a\n");
  EXPECT_EQ(err.text, "[0] b\n");
}

TEST_F(ConsoleTest, FlushesAtOnceWhenNothingIsQueued) {
  Pipe console = make_pipe();
  router(console.write.get(), console.write.get());
  bool everything = false;
  router_->when_flushed(1s, [&](bool all) { everything = all; });
  EXPECT_TRUE(everything);
}

TEST_F(ConsoleTest, FlushWaitsForTheReader) {
  Pipe console = make_pipe();
  router(console.write.get(), console.write.get());
  router_->print(std::string(300'000, 'x'));
  Reader reader(loop, std::move(console.read));
  bool everything = false;
  router_->when_flushed(60s, [&](bool all) { everything = all; });
  EXPECT_FALSE(everything);
  reader.read_until([](const std::string& text) { return text.size() == 300'001; });
  EXPECT_TRUE(everything);
}

TEST_F(ConsoleTest, FlushGivesUpAtItsLimit) {
  Pipe console = make_pipe();
  router(console.write.get(), console.write.get());
  router_->print(std::string(300'000, 'x'));
  int told = 0;
  router_->when_flushed(10ms, [&](bool all) {
    EXPECT_FALSE(all);
    ++told;
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(router_->flush(10ms)) << "the blocking form too";
}

TEST_F(ConsoleTest, BeforeTheLastWordsOnlyAnOpenLineEnds) {
  for (const char* const said : {"", "all lines have ended\n", "this one has not"}) {
    Pipe console = make_pipe();
    router(console.write.get(), console.write.get());
    if (*said != 0) router_->print(said);
    router_->begin_last_lines();
    router_->print("the verdict\n");
    EXPECT_TRUE(router_->flush(60s));
    Reader reader(loop, std::move(console.read));
    reader.read_until([](const std::string& text) { return text.ends_with("the verdict\n"); });
    const std::string before = said;
    EXPECT_EQ(reader.text, before + (before.empty() || before.back() == '\n' ? "" : "\n") + "the verdict\n");
  }
}

TEST_F(ConsoleTest, InAHurryTheLastWordsComeBeforeWhatIsStillQueued) {
  for (const char* const line : {"", "\n"}) {
    Pipe console = make_pipe();
    router(console.write.get(), console.write.get());
    // What the pipe takes (65536 bytes) ends inside a line, or with one.
    router_->print(std::string(65'535, 'x') + (*line != 0 ? line : "x") + std::string(300'000, 'y'));
    router_->begin_last_lines();
    router_->print("the verdict");
    bool everything = false;
    router_->when_flushed(60s, [&](bool all) { everything = all; });
    EXPECT_TRUE(router_->hurry_last_lines(60s));
    EXPECT_FALSE(router_->hurry_last_lines(60s)) << "nothing is in their way any more";
    Reader reader(loop, std::move(console.read));
    reader.read_until([](const std::string& text) { return text.ends_with("the verdict\n"); });
    EXPECT_EQ(reader.text.substr(65'535), (*line != 0 ? "" : "x") + std::string("\nthe verdict\n"));
    EXPECT_TRUE(everything);
  }
}

TEST_F(ConsoleTest, ALineOfAnotherProgramOnTheTerminalIsDrawnAgainBelowOurs) {
  Pipe terminal = make_terminal();
  router(terminal.read.get(), terminal.read.get(), {.live = false, .colour = false});
  Reader reader(loop, std::move(terminal.write));
  put(terminal.read, "(gdb) b");
  router_->set_other_progress_line(true, "(gdb) b");
  const Fd worker = stream_of(0);
  put(worker, "one\n");
  reader.read_until_it_says("one\n(gdb) b");
  put(worker, "two\n");
  reader.read_until_it_says("two\n(gdb) b");
  router_->print("lrun: note: three\n");
  EXPECT_EQ(reader.take(), "(gdb) b\r\x1b[K[0] one\n(gdb) b\r\x1b[K[0] two\n(gdb) b\r\x1b[Klrun: note: three\n(gdb) b");
  router_->set_other_progress_line(false, {});
  router_->print("four\n");
  EXPECT_TRUE(reader.take().ends_with("(gdb) bfour\n")) << reader.text << "who ended the line has moved on";
}

TEST_F(ConsoleTest, BelowALineThatCannotBeDrawnAgainANewOneIsBegun) {
  Pipe terminal = make_terminal();
  router(terminal.read.get(), terminal.read.get(), {.live = false, .colour = false});
  Reader reader(loop, std::move(terminal.write));
  router_->set_other_progress_line(true, {});
  router_->print("one\n");
  router_->print("two\n");
  EXPECT_EQ(reader.take(), "\none\ntwo\n");
}

TEST_F(ConsoleTest, ALineOfAnotherProgramIsNoneOfAPipes) {
  Pipe pipe = make_pipe();
  router(pipe.write.get(), pipe.write.get());
  router_->set_other_progress_line(true, "(gdb) ");
  router_->print("one\n");
  EXPECT_EQ(Reader(loop, std::move(pipe.read)).take(), "one\n");
}

}  // namespace
}  // namespace lrun::launcher
