#include "report/head_channel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;

/// The frames that `speak` sends.
std::vector<NodeFrame> frames_of(const std::function<void(HeadChannel&)>& speak) {
  Pipe pipe = make_pipe();
  const HeadSignals signals;
  HeadChannel channel(pipe.write.get(), true, signals);
  speak(channel);
  pipe.write.reset();
  std::string bytes(65536, '\0');
  const ssize_t count = ::read(pipe.read.get(), bytes.data(), bytes.size());
  NodeFrameReader reader;
  reader.feed(std::string_view(bytes).substr(0, count < 0 ? 0 : static_cast<std::size_t>(count)));
  std::vector<NodeFrame> frames;
  while (const auto frame = reader.next()) frames.push_back(*frame);
  return frames;
}

TEST(HeadChannel, TellsWordsAboutTheJobFromThoseAboutTheNode) {
  const std::vector<NodeFrame> frames = frames_of([](HeadChannel& channel) {
    channel.print_of_job("job\n");
    channel.print_lines("node\n");
    channel.send_begun();
  });
  EXPECT_EQ(frames,
            (std::vector<NodeFrame>{{Kind::kJobWords, "job\n"}, {Kind::kOwnWords, "node\n"}, {Kind::kBegun, ""}}));
}

TEST(HeadChannel, TheHeadNamesTheHostOfAMessage) {
  const std::vector<NodeFrame> frames = frames_of([](HeadChannel& channel) { channel.warn("the disk is full"); });
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames.front().kind, Kind::kOwnWords);
  EXPECT_EQ(text_of_node(frames.front().payload, "b", false), "lrun: warning: b: the disk is full\n");
  EXPECT_EQ(text_of_node(frames.front().payload, "", false), "lrun: warning: the disk is full\n");
}

TEST(HeadChannel, LinesStandAsTheyAre) {
  EXPECT_EQ(text_of_node("lrun: error: x\n", "b", true), "lrun: error: x\n");
  EXPECT_EQ(text_of_node("", "b", true), "");
}

TEST(HeadChannel, WhatCannotBeSentIsLost) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe = make_pipe();
  const HeadSignals signals;
  HeadChannel channel(pipe.write.get(), false, signals);
  pipe.read.reset();
  channel.note("nobody reads this");
}

TEST(HeadSignals, AForkedProcessSeesWhatIsNotedLater) {
  HeadSignals signals;
  Pipe go = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    (void)!::read(go.read.get(), &byte, 1);
    ::_exit(signals.has(SIGTERM) && !signals.has(SIGINT) && signals.is_lost() ? 0 : 1);
  }
  signals.note(SIGTERM);
  signals.note_loss();
  (void)write_all(go.write.get(), "x");
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lrun::launcher
