#include "report/message_sink.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "support/recording_sink.h"

namespace lrun::launcher {
namespace {

/// Runs `body` with stderr going to a pipe.
/// \return what came out.
template <class Body>
std::string stderr_of(Body body) {
  Pipe pipe = make_pipe();
  const Fd saved(::dup(STDERR_FILENO));
  ::dup2(pipe.write.get(), STDERR_FILENO);
  body();
  ::dup2(saved.get(), STDERR_FILENO);
  pipe.write.reset();
  std::string text(4096, '\0');
  const ssize_t length = ::read(pipe.read.get(), text.data(), text.size());
  text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return text;
}

TEST(StderrSink, EverythingGoesToStderr) {
  StderrSink stderr_sink;
  MessageSink& sink = stderr_sink;
  EXPECT_EQ(stderr_of([&] { sink.print_error(UserError("bad", "do that")); }),
            "lrun: error: bad\nlrun: hint: do that\n");
  EXPECT_EQ(stderr_of([&] { sink.warn("careful"); }), "lrun: warning: careful\n");
  EXPECT_EQ(stderr_of([&] { sink.print_lines("a\nb\n"); }), "a\nb\n");
  EXPECT_EQ(stderr_of([&] { sink.print_of_job("c\n"); }), "c\n");
}

TEST(StderrSink, AClosedStderrSwallowsTheMessage) {
  const Fd saved(::dup(STDERR_FILENO));
  ::close(STDERR_FILENO);
  StderrSink().print(Severity::kNote, "nobody reads this");
  ::dup2(saved.get(), STDERR_FILENO);
}

TEST(MessageSink, AMessageAboutTheJobIsToldApartFromOneAboutTheNode) {
  RecordingSink sink;
  sink.note("here");
  sink.message_of_job(Severity::kNote, "everywhere");
  EXPECT_EQ(sink.entries,
            (std::vector<RecordingSink::Entry>{{false, "lrun: note: here\n"}, {true, "lrun: note: everywhere\n"}}));
}

}  // namespace
}  // namespace lrun::launcher
