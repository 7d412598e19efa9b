#include "logs/line_presenter.h"

#include <gtest/gtest.h>

#include <memory>
#include <regex>
#include <string>

#include "logs/log_router.h"
#include "support/log_test_support.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

/// A router whose two consoles are one pipe or terminal.
class PresenterTest : public ::testing::Test {
 protected:
  void route_to(Pipe console, LogOptions options) {
    console_ = std::move(console.write);
    options.files = false;
    options.stdout_fd = options.stderr_fd = console_.get();
    router_ = std::make_unique<LogRouter>(loop_, options);
    reader_ = std::make_unique<Reader>(loop_, std::move(console.read));
  }

  Fd stream_of(int rank) {
    Pipe pipe = make_pipe();
    router_->add_stream(rank, rank, LogStream::kOut, std::move(pipe.read));
    return std::move(pipe.write);
  }

  void expect_after(const std::string& wanted, const std::string& all) {
    reader_->read_until_it_says(wanted);
    EXPECT_EQ(reader_->text, all);
    reader_->text.clear();
  }

  IgnoreBrokenPipes ignore_broken_pipes_;
  EventLoop loop_;
  Fd console_;
  std::unique_ptr<LogRouter> router_;
  std::unique_ptr<Reader> reader_;
};

TEST_F(PresenterTest, FoldsWhatSeveralRanksPrint) {
  route_to(make_pipe(), {.fold = true});
  const Fd first = stream_of(0);
  const Fd second = stream_of(1);
  const Fd third = stream_of(2);
  put(first, "same\nmine\n");
  put(second, "same\n");
  put(third, "same\n");
  expect_after("mine\n", "[0-2] same\n[0] mine\n");  // both within the window of 'same'
  put(second, "mine\n");
  expect_after("mine\n", "[1] mine\n");
}

TEST_F(PresenterTest, ShowsAFoldedLineBeforeWhatLrunSays) {
  route_to(make_pipe(), {.fold = true});
  const Fd first = stream_of(0);
  put(first, "same\n");
  router_->worker_ended(0);
  router_->print("lrun: the end");
  expect_after("the end\n", "[0] same\nlrun: the end\n");
}

TEST_F(PresenterTest, OnATerminalLaterRanksJoinTheLineThatIsThere) {
  route_to(make_terminal(30), {.fold = true});
  const Fd first = stream_of(0);
  const Fd second = stream_of(1);
  put(first, "same\nmine\n");
  expect_after("mine\n", "[0] same\n[0] mine\n");
  put(second, "same\n");
  expect_after("\x1b[1B\x1b[1B", "\r\x1b[2A\x1b[2K[0,1] same\r\x1b[1B\x1b[1B");
}

TEST_F(PresenterTest, WhatLrunSaidInBetweenIsNotDrawnOver) {
  route_to(make_terminal(30), {.fold = true});
  const Fd first = stream_of(0);
  const Fd second = stream_of(1);
  put(first, "same\n");
  expect_after("same\n", "[0] same\n");
  router_->print("lrun: note");
  expect_after("note\n", "lrun: note\n");
  put(second, "same\n");
  expect_after("same\n", "[1] same\n");
}

TEST_F(PresenterTest, NeverFoldsAPieceOfALine) {
  route_to(make_pipe(), {.fold = true});
  const std::string half(LineSplitter::kLongestHeld + 1, 'x');
  Writer writer(loop_, stream_of(0), half + "\n");
  put(stream_of(1), "\n");
  reader_->read_until([&](const std::string& text) { return text.size() >= half.size() + 10; });
  EXPECT_EQ(reader_->text.size(), half.size() + 10) << "'[0] ' and '[1] ' once, and their newlines";
}

TEST_F(PresenterTest, StampsLinesWithTheTimeOfReading) {
  route_to(make_pipe(), {.timestamps = true});
  put(stream_of(0), "now\n");
  reader_->read_until_it_says("now\n");
  const std::regex stamped(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} \[0\] now\n)");
  EXPECT_TRUE(std::regex_match(reader_->text, stamped)) << reader_->text;
}

TEST_F(PresenterTest, ABarIsLiveOnATerminalAndOneLineAtItsEnd) {
  route_to(make_terminal(30), {});
  const Fd worker = stream_of(0);
  put(worker, "\r10%\r20%");
  expect_after("20%", "[0] 20%");
  put(worker, "\r30%");
  expect_after("30%", "\r\x1b[K[0] 30%");
  put(worker, "\r100%\nnext\n");
  expect_after("next\n", "\r\x1b[K[0] 100%\n[0] next\n");
}

TEST_F(PresenterTest, AFinishedBarStaysWhenItsNewlineIsWrittenAlone) {
  route_to(make_terminal(30), {});
  const Fd worker = stream_of(0);
  put(worker, "\r10%\r100%");
  expect_after("100%", "[0] 100%");
  put(worker, "\n");
  expect_after("\n", "\r\x1b[K[0] 100%\n");
}

TEST_F(PresenterTest, AFinishedBarStaysWhenItsLineEndIsWrittenInTwoHalves) {
  route_to(make_terminal(30), {});
  const Fd worker = stream_of(0);
  put(worker, "10%\r100%");
  expect_after("100%", "[0] 100%");
  put(worker, "\r");
  expect_after("100%\r", "\r\x1b[K[0] 100%\r");
  put(worker, "\n");
  expect_after("\n", "\r\x1b[K[0] 100%\r\n");
}

TEST_F(PresenterTest, ABarWithItsReturnsBehindLeavesOnlyItsLastDrawing) {
  route_to(make_terminal(30), {});
  const Fd worker = stream_of(0);
  put(worker, "start");
  put(worker, "\r10%\r");
  expect_after("10%", "[0] 10%\r");
  put(worker, "100%\n");
  expect_after("\n", "\r\x1b[K[0] 100%\n");
}

TEST_F(PresenterTest, ABarLongerThanAnyLineStaysToo) {
  route_to(make_terminal(30), {});
  std::string text;
  while (text.size() < 3 * LineSplitter::kLongestHeld) text += "\rstep " + std::to_string(text.size());
  const Fd end = stream_of(0);
  Writer writer(loop_, Fd(::dup(end.get())), text + "\rstep last");
  bool written = false;
  writer.closed = [&] { written = true; };
  reader_->read_until([&](const std::string& seen) { return written && seen.ends_with("step last"); });
  reader_->text.clear();
  put(end, "\n");
  expect_after("\n", "\r\x1b[K[0] step last\n");
}

TEST_F(PresenterTest, FoldsALineThatCameInTwoWrites) {
  route_to(make_pipe(), {.fold = true});
  const Fd first = stream_of(0);
  const Fd second = stream_of(1);
  put(first, "sa");
  put(second, "sa");
  put(second, "me\nmine\n");
  put(first, "me\n");
  expect_after("mine\n", "[0,1] same\n[1] mine\n");
}

TEST_F(PresenterTest, TheBarOfTheLowestRankIsTheLiveOne) {
  route_to(make_terminal(30), {});
  const Fd first = stream_of(0);
  const Fd second = stream_of(1);
  put(second, "\r50%");
  expect_after("50%", "[1] 50%");
  put(first, "\r40%");
  expect_after("40%", "\r\x1b[K[0] 40%");
  put(second, "\r100%\n");
  expect_after("[0] 40%", "\r\x1b[K[1] 100%\n[0] 40%");  // below all others
  router_->worker_ended(0);
  expect_after("40%\n", "\r\x1b[K[0] 40%\n");
}

TEST_F(PresenterTest, ALiveLineNeverWraps) {
  route_to(make_terminal(30), {});
  const Fd worker = stream_of(0);
  put(worker, "\r" + std::string(100, '#'));
  expect_after("\x1b[0m", "[0] " + std::string(24, '#') + "…\x1b[0m");
}

TEST_F(PresenterTest, ElsewhereABarIsWhatWasWritten) {
  route_to(make_pipe(), {});
  put(stream_of(0), "\r10%\r100%\n");
  expect_after("100%\n", "[0] \r10%\r100%\n");
}

}  // namespace
}  // namespace lrun::launcher
