#include "rendezvous/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace lrun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Side = Handshake::Side;

const std::string kNonce(32, 'n');
const std::string kOther(32, 'o');

/// Both ends talk until neither has anything to say; all bytes are cut into pieces of `step`.
void talk(Handshake& launcher, Handshake& leader, std::size_t step = 1000) {
  const auto pass = [step](Handshake& from, Handshake& to) {
    const std::string bytes = from.take_output();
    for (std::size_t at = 0; at < bytes.size(); at += step) to.feed(std::string_view(bytes).substr(at, step));
    return !bytes.empty();
  };
  while (pass(launcher, leader) || pass(leader, launcher)) {
  }
}

TEST(Handshake, BringsTogetherWhoSharesASecretOrHasNone) {
  for (const char* const secret : {"", "hush"}) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
      Handshake launcher(Side::kLauncher, secret, kNonce);
      Handshake leader(Side::kServer, secret, kOther);
      talk(launcher, leader, step);
      EXPECT_TRUE(launcher.done()) << launcher.refusal();
      EXPECT_TRUE(leader.done()) << leader.refusal();
    }
  }
}

TEST(Handshake, TellsBothEndsWhichSecretIsWrong) {
  struct Case {
    const char* of_launcher;
    const char* of_leader;
    const char* launcher_hears;
    const char* leader_hears;
  };
  for (const Case& secrets : {
           Case{"hush", "", "it has no LRUN_JOB_SECRET, and this launcher has one",
                "it has an LRUN_JOB_SECRET, and this launcher has none"},
           Case{"", "hush", "it has an LRUN_JOB_SECRET, and this launcher has none",
                "it has no LRUN_JOB_SECRET, and this launcher has one"},
           Case{"hush", "Hush", "it has another LRUN_JOB_SECRET", "it has another LRUN_JOB_SECRET"},
       }) {
    Handshake launcher(Side::kLauncher, secrets.of_launcher, kNonce);
    Handshake leader(Side::kServer, secrets.of_leader, kOther);
    talk(launcher, leader);
    EXPECT_FALSE(launcher.done() || leader.done());
    EXPECT_EQ(launcher.refusal(), secrets.launcher_hears);
    EXPECT_EQ(leader.refusal(), secrets.leader_hears);
    EXPECT_EQ(launcher.hint(), "set LRUN_JOB_SECRET to the same value on every node, or on none");
  }
}

TEST(Handshake, NeverSaysTheSecretAndNeverTheSameTwice) {
  const auto said = [](const std::string& nonce) {
    Handshake launcher(Side::kLauncher, "hush", nonce);
    Handshake leader(Side::kServer, "hush", kOther);
    leader.feed(launcher.take_output());
    launcher.feed(leader.take_output());
    return launcher.take_output();
  };
  EXPECT_EQ(said(kNonce).find("hush"), std::string::npos);
  EXPECT_TRUE(said(kNonce).starts_with("proof "));
  EXPECT_NE(said(kNonce), said(kOther)) << "a proof that was overheard is of no use later";
}

TEST(Handshake, TakesNoEchoForAProof) {
  Handshake launcher(Side::kLauncher, "hush", kNonce);
  std::string hello = launcher.take_output();
  launcher.feed(hello);  // a foreign program that sends everything back
  launcher.feed(launcher.take_output());
  EXPECT_FALSE(launcher.done());
  EXPECT_EQ(launcher.refusal(), "it has another LRUN_JOB_SECRET");
}

TEST(Handshake, GivesAStrangerNothingToTrySecretsAgainst) {
  Handshake leader(Side::kServer, "hush", kNonce);
  Handshake foreign(Side::kLauncher, "guess", kOther);
  leader.feed(foreign.take_output());
  const std::string hello = leader.take_output();
  foreign.feed(hello);
  leader.feed(foreign.take_output());
  EXPECT_EQ(leader.take_output(), "no\n");
  EXPECT_EQ(hello.find("proof"), std::string::npos);
}

TEST(Handshake, KeepsWhatComesBehindIt) {
  Handshake launcher(Side::kLauncher, "", kNonce);
  Handshake leader(Side::kServer, "", kOther);
  leader.feed(launcher.take_output() + "more");
  EXPECT_TRUE(leader.done());
  EXPECT_EQ(leader.take_rest(), "more");
}

TEST(Handshake, NamesWhoIsNoLauncher) {
  const auto refusal_of = [](const std::string& said) {
    Handshake launcher(Side::kLauncher, "", kNonce);
    launcher.feed(said);
    return launcher.refusal();
  };
  EXPECT_EQ(refusal_of("SSH-2.0-OpenSSH_9.2\r\n"), "it is not lrun: it sent 'SSH-2.0-OpenSSH_9.2' (an SSH server)");
  EXPECT_EQ(refusal_of("HTTP/1.1 400 Bad Request\r\nServer: x"),
            "it is not lrun: it sent 'HTTP/1.1 400 Bad Request' (a web server)");
  EXPECT_EQ(refusal_of("-ERR \x1b[2J\n"), "it is not lrun: it sent '-ERR \\x1b[2J'");
  EXPECT_EQ(refusal_of("lrun-job/9 something\n"),
            "it is another version of lrun: it speaks lrun-job/9, not lrun-job/8");
  EXPECT_EQ(refusal_of("lrun-job/8 short open\n"), "it sent an invalid handshake");
  EXPECT_EQ(refusal_of("lrun-job/8 " + std::string(200, 'a')), "it sent a line that is too long");
  EXPECT_EQ(refusal_of("lrun-j"), "") << "the rest may come";
  EXPECT_EQ(hint_of_other_port("--master-port"), "name another port with '--master-port', on every node");
}

TEST(Handshake, TellsAnotherVersionWhichOneThisIs) {
  Handshake leader(Side::kServer, "", kNonce);
  leader.feed("lrun-job/9 something\n");
  EXPECT_TRUE(leader.take_output().starts_with("lrun-job/8 "));
  EXPECT_FALSE(leader.done());
}

/// With and without a secret: there is no one to show it to.
TEST(Handshake, HearsThatAJobOfOneNodeHasThePort) {
  for (const char* const secret : {"", "hush"}) {
    for (const std::string name : {"mine", ""}) {
      Handshake launcher(Side::kLauncher, secret, kNonce);
      launcher.feed(lone_job_handshake(name));
      EXPECT_FALSE(launcher.done());
      const std::string named = name.empty() ? "" : " 'mine'";
      EXPECT_EQ(launcher.refusal(), "it is the workers' store of the job" + named + ", which has one node");
      EXPECT_THAT(launcher.hint(), AllOf(HasSubstr("'--rdzv-endpoint'"), HasSubstr("'--num-nodes'")));
    }
  }
}

TEST(Handshake, TakesAnyNameOfALoneJob) {
  for (const std::string& name : {std::string(5000, 'x'), std::string(100, '\x1b'), std::string("a\nb")}) {
    const std::string hello = lone_job_handshake(name);
    EXPECT_EQ(std::count(hello.begin(), hello.end(), '\n'), 1);
    Handshake launcher(Side::kLauncher, "", kNonce);
    launcher.feed(hello);
    EXPECT_TRUE(launcher.refusal().starts_with("it is the workers' store of the job '")) << launcher.refusal();
    Handshake leader(Side::kServer, "", kNonce);
    leader.feed(hello);
    EXPECT_EQ(leader.refusal(), "it sent an invalid handshake") << "only a launcher is told so";
  }
}

}  // namespace
}  // namespace lrun::launcher
