#include "logs/log_router.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "support/log_test_support.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A router between pipes: the test is workers and terminal.
class LogRouterTest : public ::testing::Test {
 protected:
  LogRouter& router(LogOptions options = {}) {
    options.stdout_fd = console_out_.get();
    options.stderr_fd = console_err_.get();
    router_ = std::make_unique<LogRouter>(loop, options);
    router_->set_events({.drained =
                             [this](int local_rank) {
                               drained.push_back(local_rank);
                               loop.stop();
                             },
                         .warning = [this](const std::string& text) { warnings.push_back(text); }});
    return *router_;
  }

  /// The writing end of a new stream.
  Fd stream_of(int rank, LogStream stream = kOut) {
    Pipe pipe = make_pipe();
    router_->add_stream(rank, rank, stream, std::move(pipe.read));
    return std::move(pipe.write);
  }

  void run_until_drained(std::size_t count) {
    const TimeLimit limit(loop);
    while (drained.size() < count && !limit.expired()) loop.run();
  }

  IgnoreBrokenPipes ignore_broken_pipes_;
  EventLoop loop;
  Pipe out_pipe_ = make_pipe();
  Pipe err_pipe_ = make_pipe();
  Fd console_out_ = std::move(out_pipe_.write);
  Fd console_err_ = std::move(err_pipe_.write);
  Reader out{loop, std::move(out_pipe_.read)};
  Reader err{loop, std::move(err_pipe_.read)};
  std::vector<int> drained;
  std::vector<std::string> warnings;
  std::unique_ptr<LogRouter> router_;
};

TEST_F(LogRouterTest, PrefixesLinesAndKeepsTheStreamsApart) {
  LogRouter& logs = router({.rank_width = 2});
  const Fd worker_out = stream_of(3);
  const Fd worker_err = stream_of(12, kErr);
  put(worker_out, "loss 0.5\nloss 0.4\n");
  put(worker_err, "warning\n");
  out.read_until_it_says("0.4\n");
  err.read_until_it_says("warning\n");
  EXPECT_EQ(out.text, "[ 3] loss 0.5\n[ 3] loss 0.4\n");
  EXPECT_EQ(err.text, "[12] warning\n");
  EXPECT_FALSE(logs.drained());
}

TEST_F(LogRouterTest, NeverTearsALineThatArrivesInParts) {
  router();
  const Fd slow = stream_of(0);
  const Fd other = stream_of(1);
  put(slow, "be");
  put(other, "line\n");
  out.read_until_it_says("line\n");
  put(slow, "gin\n");
  out.read_until_it_says("gin\n");
  EXPECT_EQ(out.text, "[1] line\n[0] begin\n");
}

TEST_F(LogRouterTest, BreaksALineOfEndlessLengthWhereAnotherWorkerSpeaks) {
  router();
  Fd endless = stream_of(0);
  const Fd other = stream_of(1);
  const std::string first(100'000, 'a');
  Writer writer(loop, std::move(endless), first + std::string(100'000, 'b'));
  out.read_until([](const std::string& text) { return text.find('a') != std::string::npos; });
  put(other, "hello\n");
  writer.closed = [&] { router_->worker_ended(0); };
  out.read_until([](const std::string& text) { return text.ends_with("b\n"); });
  EXPECT_NE(out.text.find("\n[1] hello\n[0] "), std::string::npos) << "the other's line stands on a line of its own";
  EXPECT_EQ(lines_of("[0] ", out.text).size(), 200'000 + 2U) << "nothing is lost; two newlines are added";
}

TEST_F(LogRouterTest, EndsAnUnfinishedLastLineOnTheConsoleButNotInTheFile) {
  const TemporaryFolder folder;
  LogRouter& logs = router();
  logs.open_files(temporary_folder(), folder.path().filename());
  Fd worker = stream_of(0);
  put(worker, "Killed");
  worker.reset();
  logs.worker_ended(0);
  EXPECT_EQ(out.take(), "[0] Killed\n");
  EXPECT_EQ(content_of(folder.path() / "0" / "stdout.log"), "Killed");
  EXPECT_EQ(logs.file(0, kOut), folder.path() / "0" / "stdout.log");
  EXPECT_EQ(logs.file(0, kErr), fs::path()) << "nothing was written there";
}

TEST_F(LogRouterTest, FilesAreByteExactForAnyBytes) {
  const TemporaryFolder folder;
  LogRouter& logs = router();
  std::mt19937 random(1);
  std::string bytes(3'000'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  Writer writer(loop, stream_of(5), bytes);
  Writer errors(loop, stream_of(5, kErr), bytes.substr(1'000'000));
  logs.open_files(temporary_folder(), folder.path().filename());
  int open = 2;
  writer.closed = errors.closed = [&] {
    if (--open == 0) logs.worker_ended(5);
  };
  out.read_until([&](const std::string& text) {
    err.take();
    return !drained.empty() && text.ends_with('\n');
  });
  EXPECT_TRUE(content_of(folder.path() / "5" / "stdout.log") == bytes) << "stdout.log is not what was printed";
  EXPECT_TRUE(content_of(folder.path() / "5" / "stderr.log") == bytes.substr(1'000'000)) << "stderr.log is not";
}

TEST_F(LogRouterTest, KeepsWhatCameBeforeTheFilesAndMakesNoneForASilentWorker) {
  const TemporaryFolder folder;
  const Folder held = Folder::open(folder.path());
  LogRouter& logs = router();
  const Fd speaks = stream_of(0);
  const Fd silent = stream_of(1);
  put(speaks, "early\n");
  out.read_until_it_says("early");
  logs.open_files(held, "attempt_0");
  put(speaks, "late\n");
  out.read_until_it_says("late");
  EXPECT_EQ(content_of(folder.path() / "attempt_0" / "0" / "stdout.log"), "early\nlate\n");
  EXPECT_FALSE(fs::exists(folder.path() / "attempt_0" / "1"));
}

TEST_F(LogRouterTest, AFullDiskIsOneWarningAndTheRunGoesOn) {
  const TemporaryFolder folder;
  LogRouter& logs = router();
  const Fd first = stream_of(0);
  const Fd second = stream_of(1);
  const FullDisk full;
  logs.open_files(temporary_folder(), folder.path().filename());
  put(first, "one\n");
  put(second, "two\n");
  out.read_until([](const std::string& text) { return text.size() == 16; });
  EXPECT_NE(out.text.find("[1] two\n"), std::string::npos);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("stdout.log' cannot be written: File too large"), std::string::npos) << warnings[0];
}

TEST_F(LogRouterTest, APipeInTheFilesPlaceIsOneWarningAndTheRunGoesOn) {
  const TemporaryFolder folder;
  LogRouter& logs = router();
  const Fd worker = stream_of(0);
  fs::create_directory(folder.path() / "0");
  ASSERT_EQ(::mkfifo((folder.path() / "0" / "stdout.log").c_str(), 0600), 0);
  logs.open_files(temporary_folder(), folder.path().filename());
  for (const char* line : {"one\n", "two\n"}) put(worker, line);
  out.read_until_it_says("two");
  EXPECT_EQ(warnings, std::vector<std::string>{"log file '" + (folder.path() / "0" / "stdout.log").string() +
                                               "' cannot be written: it is not a regular file; the run goes on "
                                               "without what is lost"});
}

TEST_F(LogRouterTest, TheTailIsCompleteWhenTheEndOfTheWorkerWasToldEvenIfTheLoopDidNotRun) {
  LogRouter& logs = router();
  Fd worker_out = stream_of(0);
  Fd worker_err = stream_of(0, kErr);
  put(worker_out, "step 1\n");
  put(worker_err, "\x1b[31mRuntimeError\x1b[0m: \xFF");
  worker_out.reset();
  worker_err.reset();
  logs.worker_ended(0);
  EXPECT_EQ(logs.tail(0), (std::vector<TailLine>{{kOut, "step 1"}, {kErr, "RuntimeError: \xEF\xBF\xBD"}}));
  EXPECT_EQ(drained, std::vector<int>{0});
  EXPECT_TRUE(logs.drained());
  EXPECT_EQ(err.take(), "[0] \x1b[31mRuntimeError\x1b[0m: \xFF\n") << "the console gets the worker's own bytes";
}

TEST_F(LogRouterTest, KnowsWhenALastLineWasShownBesideOursUnlessItScrolledAway) {
  LogRouter& logs = router();
  const Fd worker_out = stream_of(0);
  const Fd worker_err = stream_of(0, kErr);
  put(worker_out, "loss 0.5\n");
  out.read_until_it_says("loss 0.5");
  put(worker_err, "RuntimeError: no\n");
  err.read_until_it_says("no\n");
  EXPECT_EQ(logs.shown_at(0, "RuntimeError: no"), logs.console_lines());
  EXPECT_EQ(logs.shown_at(0, "loss 0.5"), std::nullopt) << "on another console than lrun's lines";
  EXPECT_EQ(logs.shown_at(0, "RuntimeError"), std::nullopt) << "no whole line";
  EXPECT_EQ(logs.shown_at(7, "RuntimeError: no"), std::nullopt) << "an unknown worker";
  put(worker_err, numbered_lines(10) + "end\n");
  err.read_until_it_says("end\n");
  EXPECT_EQ(logs.shown_at(0, "RuntimeError: no"), std::nullopt) << "eleven lines ago";
}

TEST_F(LogRouterTest, AGrandchildMayHoldThePipeOnlyUntilTheLimit) {
  LogRouter& logs = router({.drain_limit = 20ms});
  Fd worker = stream_of(0);
  const Fd grandchild(::dup(worker.get()));
  put(grandchild, "still here");
  worker.reset();
  logs.worker_ended(0);
  EXPECT_FALSE(logs.drained(0)) << "the grandchild may speak for a while";
  run_until_drained(1);
  EXPECT_TRUE(logs.drained(0));
  EXPECT_EQ(out.take(), "[0] still here\n");
  EXPECT_EQ(::write(grandchild.get(), "x", 1), -1);
  EXPECT_EQ(errno, EPIPE) << "our end is closed";
}

TEST_F(LogRouterTest, AGrandchildThatFloodsIsNotFollowedForEver) {
  LogRouter& logs = router({.drain_limit = 20ms});
  Fd worker = stream_of(0);
  Writer grandchild(loop, Fd(::dup(worker.get())), std::string(100'000, 'x'), 100'000);
  worker.reset();
  out.read_until([&, told = false](const std::string& text) mutable {
    if (!text.empty() && !std::exchange(told, true)) logs.worker_ended(0);
    return logs.drained(0) && told;
  });
  EXPECT_LT(grandchild.written, 10'000'000'000U);
}

TEST_F(LogRouterTest, AGrandchildsLastWordsAreTakenWhenItEndsInTime) {
  LogRouter& logs = router({.drain_limit = 60s});
  Fd worker = stream_of(0);
  Fd grandchild(::dup(worker.get()));
  worker.reset();
  logs.worker_ended(0);
  put(grandchild, "last words\n");
  grandchild.reset();
  run_until_drained(1);
  EXPECT_EQ(out.take(), "[0] last words\n");
}

TEST_F(LogRouterTest, AWorkerThatClosedItsOutputIsDrainedOnlyWhenItEnded) {
  LogRouter& logs = router();
  Fd worker = stream_of(0);
  put(worker, "bye\n");
  worker.reset();
  out.read_until_it_says("bye");
  EXPECT_FALSE(logs.drained(0));
  EXPECT_TRUE(drained.empty());
  logs.worker_ended(0);
  logs.worker_ended(0);
  EXPECT_EQ(drained, std::vector<int>{0}) << "told once";
}

TEST_F(LogRouterTest, SaysHowLongAWorkerHasBeenQuiet) {
  const TemporaryFolder folder;
  LogRouter& logs = router();
  EXPECT_EQ(logs.quiet(0), std::nullopt) << "there is none";
  const Fd worker = stream_of(0);
  EXPECT_EQ(logs.quiet(0), std::nullopt) << "it has printed nothing";
  put(worker, "step 1\n");
  out.read_until_it_says("step 1\n");
  const std::optional<Duration> quiet = logs.quiet(0);
  ASSERT_TRUE(quiet);
  EXPECT_LT(*quiet, Duration(3'600'000));

  const fs::path own_file = folder.path() / "stdout.log";
  logs.add_file(1, kOut, own_file);
  EXPECT_EQ(logs.quiet(1), std::nullopt) << "no file";
  std::ofstream(own_file) << "step 1\n";
  fs::last_write_time(own_file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(logs.quiet(1));
  EXPECT_GE(*logs.quiet(1), Duration(7'200'000));
}

TEST_F(LogRouterTest, AWorkerWithoutStreamsIsDrainedAtOnce) {
  LogRouter& logs = router();
  EXPECT_TRUE(logs.drained());
  logs.worker_ended(7);
  EXPECT_EQ(drained, std::vector<int>{7});
  EXPECT_TRUE(logs.tail(7).empty());
}

TEST_F(LogRouterTest, ANewAttemptForgetsTheLastOne) {
  const TemporaryFolder folder;
  const Folder held = Folder::open(folder.path());
  LogRouter& logs = router();
  const Fd first = stream_of(0);
  logs.open_files(held, "attempt_0");
  put(first, "first try\nunfinished");
  out.read_until_it_says("first try\n");
  logs.begin_attempt();
  EXPECT_TRUE(logs.tail(0).empty());
  EXPECT_TRUE(out.take().ends_with("[0] unfinished\n")) << out.text;
  const Fd second = stream_of(0);
  logs.open_files(held, "attempt_1");
  put(second, "second try\n");
  out.read_until_it_says("second try");
  EXPECT_EQ(content_of(folder.path() / "attempt_1" / "0" / "stdout.log"), "second try\n");
  EXPECT_TRUE(drained.empty()) << "the last attempt's worker is nobody's any more";
}

TEST_F(LogRouterTest, LeavesNothingArmedWhenAllWorkersAreDrained) {
  LogRouter& logs = router();
  for (int rank = 0; rank < 40; ++rank) {
    const Fd worker = stream_of(rank);
    put(worker, "hello\n");
  }
  for (int rank = 0; rank < 40; ++rank) logs.worker_ended(rank);
  EXPECT_EQ(drained.size(), 40U);
  loop.run();  // returns, or the test times out
  EXPECT_TRUE(logs.drained());
}

}  // namespace
}  // namespace lrun::launcher
