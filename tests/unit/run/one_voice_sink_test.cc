#include "run/one_voice_sink.h"

#include <gtest/gtest.h>

#include "support/recording_sink.h"

namespace lrun::launcher {
namespace {

TEST(OneVoiceSink, OnlyWhatIsAboutTheJobIsLeftToAnother) {
  RecordingSink printed;
  bool speaks = true;
  OneVoiceSink one_voice(printed, [&] { return speaks; });
  MessageSink& sink = one_voice;
  sink.print_of_job("a\n");
  sink.note("b");
  speaks = false;
  sink.print_of_job("c\n");
  sink.message_of_job(Severity::kNote, "d");
  sink.note("e");
  sink.print_lines("f\n");
  EXPECT_EQ(printed.text(), "a\nlrun: note: b\nlrun: note: e\nf\n");
}

}  // namespace
}  // namespace lrun::launcher
