#include "verdict/error_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "verdict/failure_record.h"
#include "verdict/job_report.h"

namespace lrun {
namespace {

constexpr std::string_view kTorchs =
    R"({"message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": "Traceback\nValueError: bad\n",)"
    R"( "timestamp": "1700000000"}}})";

TEST(ErrorFile, IsReadAsTorchWritesIt) {
  const auto file = parse_error_file(kTorchs);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->message, "ValueError: bad");
  EXPECT_EQ(file->call_stack, "Traceback\nValueError: bad\n");
  EXPECT_EQ(file->time, 1'700'000'000);
  EXPECT_FALSE(file->plain);
}

TEST(ErrorFile, MayHoldItsMessageAsText) {
  for (const char* const time : {"1700000000", "\"1700000000\""}) {
    const auto file = parse_error_file(std::string(R"({"message": "out of luck", "timestamp": )") + time + "}");
    ASSERT_TRUE(file) << time;
    EXPECT_EQ(file->message, "out of luck");
    EXPECT_EQ(file->time, 1'700'000'000);
    EXPECT_TRUE(file->plain);
  }
}

TEST(ErrorFile, WithoutAMessageIsNotRead) {
  for (const char* const text : {"", "not json", "{}", "[]", "3", "null", R"({"message": 3})", R"({"message": {}})",
                                 R"({"message": null})", R"({"message": {"extraInfo": 3}})", "{\"message\": \"x"}) {
    EXPECT_EQ(parse_error_file(text), std::nullopt) << text;
  }
}

TEST(ErrorFile, WithAnUnreadableTimeIsStillRead) {
  for (const char* const time : {"\"soon\"", "-3", "1e300", "[]", "99999999999999999999", "\"\""}) {
    const auto file = parse_error_file(std::string(R"({"message": "m", "timestamp": )") + time + "}");
    ASSERT_TRUE(file) << time;
    EXPECT_GE(file->time, 0) << time;
  }
}

TEST(ErrorFile, OfTheFarFutureIsReadByOtherNodes) {
  for (const char* const time : {"9200000000000000000", "\"9200000000000000000\"", "18446744073709551615"}) {
    const auto file = parse_error_file(std::string(R"({"message": "m", "timestamp": )") + time + "}");
    ASSERT_TRUE(file) << time;
    FailureRecord record;
    record.value = 7;
    record.error_time = file->time;
    const ClockShift shift{.steady_ns = 0, .wall_ns = 2'000'000'000'000'000'000};
    const JobReport report = report_of("a", 0, {.kind = RunEnd::Kind::kWorkerFailed}, 1, {record}, shift);
    EXPECT_EQ(job_report_from_json(to_json(report)), report) << time;
  }
}

TEST(ErrorFile, OfAnyDepthAndLengthIsRefusedAndNotSuffered) {
  EXPECT_EQ(parse_error_file(std::string(ErrorFile::kMostBytes + 1, ' ')), std::nullopt);
  EXPECT_EQ(parse_error_file(std::string(200'000, '[')), std::nullopt);
  const std::string deep = R"({"message": "m", "x": )" + std::string(50'000, '[') + std::string(50'000, ']') + "}";
  const auto file = parse_error_file(deep);
  ASSERT_TRUE(file) << "what nobody asked for may be as deep as it likes";
  EXPECT_EQ(file->message, "m");
}

TEST(ErrorFileForParent, IsTheWorkersOwnWithTheExitCodeAdded) {
  const auto json = nlohmann::json::parse(error_file_for_parent({}, parse_error_file(kTorchs), 9));
  EXPECT_EQ(json["message"]["message"], "ValueError: bad");
  EXPECT_EQ(json["message"]["errorCode"], 9);
  EXPECT_EQ(json["message"]["extraInfo"]["timestamp"], "1700000000");
}

TEST(ErrorFileForParent, SaysBehindTheWorkersErrorWhatIsToBlame) {
  const std::string cause = "rank 1 exited with code 0";
  const auto json = nlohmann::json::parse(error_file_for_parent({}, parse_error_file(kTorchs), 9, cause));
  EXPECT_EQ(json["message"]["message"], "ValueError: bad; rank 1 exited with code 0");
  EXPECT_EQ(json["message"]["extraInfo"]["timestamp"], "1700000000");
}

TEST(ErrorFileForParent, PassesATextFormOnAsItIs) {
  const std::string text = R"({"message": "out of luck", "timestamp": 3})";
  EXPECT_EQ(error_file_for_parent({}, parse_error_file(text), 9), text);
}

TEST(ErrorFileForParent, WithoutOneOfTheWorkerTellsWhatIsKnown) {
  FailureRecord record;
  record.value = 9;
  record.error = "ValueError: \xff";
  record.evidence = {"a", "b"};
  record.wall_ns = 1'700'000'000'000'000'000;
  const auto json = nlohmann::json::parse(error_file_for_parent(record, std::nullopt, 9));
  EXPECT_NE(json["message"]["message"].get<std::string>().find("ValueError: "), std::string::npos);
  EXPECT_EQ(json["message"]["extraInfo"]["py_callstack"], "a\nb\n");
  EXPECT_EQ(json["message"]["extraInfo"]["timestamp"], "1700000000");
  EXPECT_EQ(json["message"]["errorCode"], 9);
}

TEST(ErrorFileForParent, WithoutAnyWordsTellsWhoseTheCodeIs) {
  FailureRecord record;
  record.rank = 3;
  record.value = 9;
  const auto json = nlohmann::json::parse(error_file_for_parent(record, std::nullopt, 9));
  EXPECT_EQ(json["message"]["message"], "rank 3 exited with code 9");
}

TEST(ErrorFileOfTheLauncher, HasTheFormOfTorchs) {
  const auto file = parse_error_file(error_file_of_launcher("no such option", 1'700'000'000));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->message, "no such option");
  EXPECT_EQ(file->time, 1'700'000'000);
}

}  // namespace
}  // namespace lrun
