#include "report/parent_error_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

#include "support/recording_sink.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

TEST(ParentErrorFile, IsThatOfTheFailureAndNamesTheRankThatEndedEarly) {
  const test::TemporaryFolder folder;
  FailureRecord early;
  early.rank = 1;
  FailureRecord waited;
  waited.value = 1;
  waited.steady_ns = 10;
  waited.cause = Cause::kPeerLost;
  waited.error = "RuntimeError: Connection closed by peer";
  waited.evidence = {"    dist.all_reduce(t)", waited.error};
  waited.error_file = folder.script("error.json",
                                    R"({"message": {"message": "RuntimeError: Connection closed by peer",)"
                                    R"( "extraInfo": {"py_callstack": "Traceback …", "timestamp": "1700000000"}}})",
                                    false);
  const std::string file = folder / "parent.json";
  const Environment environment({{kErrorFileVariable, file}});
  RecordingSink sink;
  leave_error_file(environment, judge({RunEnd::Kind::kWorkerFailed}, {early, waited}), sink);
  EXPECT_EQ(sink.text(), "");
  std::ifstream left(file);
  const auto json = nlohmann::json::parse(left, nullptr, false)["message"];
  EXPECT_EQ(json["message"],
            "RuntimeError: Connection closed by peer; rank 1 exited with code 0: rank 0 waited for it in all_reduce: "
            "did it run fewer steps?");
  EXPECT_EQ(json["extraInfo"]["py_callstack"], "Traceback …");
  EXPECT_EQ(json["extraInfo"]["timestamp"], "1700000000");
  EXPECT_EQ(json["errorCode"], 1);
}

}  // namespace
}  // namespace lrun::launcher
