#include "store/etcd_login.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

using Kind = EtcdLogin::Verdict::Kind;

EtcdAnswer error_answer(int code, const std::string& text) {
  EtcdAnswer answer;
  answer.error = text;
  answer.code = code;
  return answer;
}

EtcdAnswer token_answer(const std::string& token) {
  EtcdAnswer answer;
  answer.token = token;
  return answer;
}

TEST(EtcdLogin, IsNotNeededWithoutAUser) {
  EtcdLogin login("", "");
  EXPECT_FALSE(login.is_due());
  EXPECT_EQ(login.judge({}).kind, Kind::kAnswer);
  const EtcdLogin::Verdict verdict = login.judge(error_answer(kEtcdUnauthenticated, "no token"));
  EXPECT_EQ(verdict.kind, Kind::kRefuse);
  EXPECT_NE(verdict.hint.find("LRUN_ETCD_USER"), std::string::npos);
}

TEST(EtcdLogin, GivesATokenForThoseThatFollow) {
  EtcdLogin login("me", "secret");
  EXPECT_TRUE(login.is_due());
  EXPECT_EQ(login.request(), etcd_authenticate("me", "secret"));
  EXPECT_EQ(login.take_token(token_answer("t1")).kind, Kind::kAgain);
  EXPECT_FALSE(login.is_due());
  EXPECT_EQ(login.token(), "t1");
}

TEST(EtcdLogin, IsDoneWhereEtcdAsksNobodyForAName) {
  EtcdLogin login("me", "secret");
  EXPECT_EQ(login.take_token(error_answer(kEtcdFailedPrecondition, "authentication is not enabled")).kind,
            Kind::kAgain);
  EXPECT_FALSE(login.is_due());
  EXPECT_EQ(login.token(), "");
}

TEST(EtcdLogin, IsRefusedWithAWrongPassword) {
  EtcdLogin login("me", "wrong");
  EXPECT_EQ(login.take_token(error_answer(kEtcdInvalidArgument, "authentication failed")).kind, Kind::kRefuse);
}

TEST(EtcdLogin, IsRepeatedWhereATokenIsOutdated) {
  EtcdLogin login("me", "secret");
  (void)login.take_token(token_answer("t1"));
  EXPECT_EQ(login.judge({}).kind, Kind::kAnswer);
  const EtcdAnswer outdated = error_answer(kEtcdInvalidArgument, "etcdserver: revision of auth store is old");
  EXPECT_EQ(login.judge(outdated).kind, Kind::kAgain);
  EXPECT_TRUE(login.is_due());
  (void)login.take_token(token_answer("t2"));
  EXPECT_EQ(login.judge(outdated).kind, Kind::kFail) << "another member may know the users as they are now";
}

TEST(EtcdLogin, IsOfNoUseWhereAFreshTokenIsNotKnown) {
  EtcdLogin login("me", "secret");
  (void)login.take_token(token_answer("t1"));
  const EtcdAnswer unknown = error_answer(kEtcdUnauthenticated, "invalid auth token");
  EtcdLogin elsewhere = login;
  EXPECT_EQ(login.judge(unknown).kind, Kind::kRefuse) << "a proxy leaves it out";
  elsewhere.forget_fresh();
  EXPECT_EQ(elsewhere.judge(unknown).kind, Kind::kAgain) << "this etcd may have been started again";
}

TEST(EtcdLogin, DoesNotHelpWithoutTheRight) {
  EtcdLogin login("me", "secret");
  (void)login.take_token(token_answer("t1"));
  const EtcdLogin::Verdict verdict = login.judge(error_answer(kEtcdPermissionDenied, "permission denied"));
  EXPECT_EQ(verdict.kind, Kind::kRefuse);
  EXPECT_EQ(verdict.why, "etcd says 'permission denied'");
}

}  // namespace
}  // namespace lrun::launcher
