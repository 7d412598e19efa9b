#include "plan/notice_source.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

using Kind = NoticeSource::Kind;

TEST(NoticeSource, IsACloudOrAFile) {
  EXPECT_EQ(parse_notice_source("aws"), (NoticeSource{Kind::kAws, ""}));
  EXPECT_EQ(parse_notice_source("Azure"), (NoticeSource{Kind::kAzure, ""}));
  EXPECT_EQ(parse_notice_source("GCP"), (NoticeSource{Kind::kGcp, ""}));
  EXPECT_EQ(parse_notice_source("./going"), (NoticeSource{Kind::kFile, "./going"}));
  EXPECT_EQ(parse_notice_source("/dev/null"), NoticeSource{}) << "nowhere";
  for (const char* const wrong : {"", "amazon", "going", "aws,gcp"}) {
    EXPECT_EQ(parse_notice_source(wrong), std::nullopt) << wrong;
  }
}

TEST(NoticeSource, IsShownAsItCanBeGiven) {
  for (const char* const text : {"aws", "azure", "gcp", "/run/going"}) {
    EXPECT_EQ(text_of(*parse_notice_source(text)), text);
  }
}

}  // namespace
}  // namespace lrun::launcher
