// Programs written for Horovod: a client that speaks its protocol meets over the rendezvous that lrun serves.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/launchers_of_a_job.h"
#include "support/lrun_process.h"
#include "support/mentions.h"
#include "support/temporary_folder.h"
#include "support/with_more_time.h"

namespace lrun::test {
namespace {

const Words kWorker{HOROVOD_WORKER};

/// What the workers told, without the prefix of lrun.
std::multiset<std::string> results(const std::string& out) {
  constexpr std::string_view kMark = "result ";
  std::multiset<std::string> found;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (const auto at = line.find(kMark); at != std::string::npos) found.insert(line.substr(at + kMark.size()));
  }
  return found;
}

/// A link to lrun of this name.
class Link {
 public:
  explicit Link(const std::string& name) : path_(folder_.path() / name) {
    std::filesystem::create_symlink(LRUN_PROGRAM, path_);
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  TemporaryFolder folder_;
  std::filesystem::path path_;
};

/// Takes ssh's part: every host is this machine.
class FakeSsh {
 public:
  FakeSsh() {
    std::ofstream(path()) << "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\n"
                             "export SSH_CONNECTION='127.0.0.1 40000 127.0.0.1 22'\nexec sh -c \"$2\"\n";
    ::chmod(path().c_str(), 0755);
  }
  [[nodiscard]] std::string path() const { return (folder_.path() / "ssh").string(); }

 private:
  TemporaryFolder folder_;
};

std::string own_name() {
  char name[256] = {};
  EXPECT_EQ(::gethostname(name, sizeof name - 1), 0);
  return name;
}

TEST(Horovod, RanksOfOneNodeMeetInAllScopes) {
  LrunProcess lrun(joined({"--strategy", "horovod", "--devices", "2"}, kWorker));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.out() << lrun.err();
  const std::string host = own_name();
  EXPECT_EQ(results(lrun.out()), (std::multiset<std::string>{
                                     "rank=0 size=2 local=0/2 cross=0/1 host=" + host + " sums=1,1,0 set=0",
                                     "rank=1 size=2 local=1/2 cross=0/1 host=" + host + " sums=1,1,1 set=none",
                                 }))
      << lrun.err();
  EXPECT_THAT(lrun.err(), mentions({"lrun: note: ", "2 workers", "by 2 (linear rule", "session.optimizer()"}));
  EXPECT_EQ(std::count(lrun.err().begin(), lrun.err().end(), '\n'), 1) << lrun.err();
}

TEST(Horovod, RunsUnderTheNameOfHorovodrun) {
  const Link horovodrun("horovodrun");
  LrunProcess lrun(joined({"-np", "4", "--gloo", "--cycle-time-ms", "2", "sh", "-c",
                           "[ $HOROVOD_CYCLE_TIME = 2 ] && exec \"$@\"", "sh"},
                          joined(kWorker, {"--meet-twice"})),
                   {.program = horovodrun.path()});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.out() << lrun.err();
  const auto told = results(lrun.out());
  EXPECT_EQ(told.size(), 8U) << "twice from each: the second time nothing old was there" << lrun.out() << lrun.err();
  EXPECT_EQ(told.count("rank=2 size=4 local=2/4 cross=0/1 host=" + own_name() + " sums=6,6,2 set=2"), 2U) << lrun.out();
}

TEST(Horovod, RunsOnSeveralHostsUnderTheNameOfHorovodrun) {
  const Link horovodrun("horovodrun");
  const FakeSsh ssh;
  LrunProcess lrun(joined({"-np", "8", "-H", "hostname1:4,hostname2:4"}, kWorker),
                   {.environment = {{"LRUN_SSH", ssh.path()}}, .program = horovodrun.path()});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.out() << lrun.err();
  const auto told = results(lrun.out());
  EXPECT_EQ(told.size(), 8U) << lrun.out() << lrun.err();
  EXPECT_EQ(told.count("rank=0 size=8 local=0/4 cross=0/2 host=hostname1 sums=28,6,4 set=12"), 1U) << lrun.out();
  EXPECT_EQ(told.count("rank=7 size=8 local=3/4 cross=1/2 host=hostname2 sums=28,22,10 set=none"), 1U) << lrun.out();
  const std::string note = "Horovod averages gradients over 8 workers";
  EXPECT_NE(lrun.err().find(note), std::string::npos) << lrun.err();
  EXPECT_EQ(lrun.err().find(note), lrun.err().rfind(note)) << "once, not from each host: " << lrun.err();
}

TEST(Horovod, StartsAsManyWorkersInAllAsHorovodrunIsTold) {
  const Link horovodrun("horovodrun");
  const FakeSsh ssh;
  const LrunProcess::Options options{.environment = {{"LRUN_SSH", ssh.path()}}, .program = horovodrun.path()};
  LrunProcess first(joined({"-np", "2", "-H", "hostname1:2,hostname2:2"}, kWorker), options);
  EXPECT_EQ(first.wait().code, 0) << first.out() << first.err();
  EXPECT_EQ(results(first.out()), (std::multiset<std::string>{
                                      "rank=0 size=2 local=0/2 cross=0/1 host=hostname1 sums=1,1,0 set=0",
                                      "rank=1 size=2 local=1/2 cross=0/1 host=hostname1 sums=1,1,1 set=none",
                                  }))
      << first.err();
  TemporaryFolder folder;
  const std::string hostfile = (folder.path() / "hosts").string();
  std::ofstream(hostfile) << "hostname1 slots=2\nhostname2 slots=2\n";
  LrunProcess both(joined({"-np", "3", "-hostfile", hostfile}, kWorker), options);
  EXPECT_EQ(both.wait().code, 0) << both.out() << both.err();
  const auto told = results(both.out());
  EXPECT_EQ(told.size(), 3U) << both.out() << both.err();
  EXPECT_EQ(told.count("rank=2 size=3 local=0/1 cross=1/2 host=hostname2 sums=3,2,2 set=2"), 1U) << both.out();
  const std::string note = "lrun: note: Horovod averages gradients over ";
  EXPECT_TRUE(both.err().starts_with(note + "3 workers: ")) << both.err();
  EXPECT_EQ(both.err().find(note), both.err().rfind(note)) << "not each host's guess: " << both.err();
  LrunProcess more({"-np", "5", "-H", "hostname1:2,hostname2:2", "true"}, options);
  EXPECT_EQ(more.wait().code, 125);
  EXPECT_EQ(more.err(),
            "lrun: error: '-np 5' is more than the 4 workers that the hosts of '-H hostname1:2,hostname2:2' have in "
            "all\nlrun: hint: write '-H hostname1:3,hostname2:2'\n");
  LrunProcess unnamed({"-np", "4", "--num_nodes", "2", "--rdzv-endpoint", "127.0.0.1:29500", "true"}, options);
  EXPECT_EQ(unnamed.wait().code, 125);
  EXPECT_TRUE(contains(unnamed.err(), "write '--devices 4' for 4 on each node")) << unnamed.err();
}

TEST(Horovod, RunsOnUnequalNodesThatMeetAtAnEndpoint) {
  for (const char* const backend : {"static", "c10d"}) {
    Job job({"--num_nodes", "2", "--strategy", "horovod", "--rdzv-backend", backend});
    LrunProcess& second = job.start({"--node-rank", "1", "-n", "1"}, kWorker);
    LrunProcess& first = job.start({"--node-rank", "0", "-n", "3"}, kWorker);
    EXPECT_EQ(first.wait().code, 0) << first.out() << first.err();
    EXPECT_EQ(second.wait().code, 0) << second.out() << second.err();
    const std::string host = own_name();  // of both: their places tell them apart
    EXPECT_EQ(results(first.out() + second.out()),
              (std::multiset<std::string>{
                  "rank=0 size=4 local=0/3 cross=0/2 host=" + host + "-0 sums=6,3,3 set=2",
                  "rank=1 size=4 local=1/3 cross=0/1 host=" + host + "-0 sums=6,3,1 set=none",
                  "rank=2 size=4 local=2/3 cross=0/1 host=" + host + "-0 sums=6,3,2 set=2",
                  "rank=3 size=4 local=0/1 cross=1/2 host=" + host + "-1 sums=6,3,3 set=none",
              }))
        << backend << first.err() << second.err();
  }
}

TEST(Horovod, MeetsAgainAfterARestart) {
  LrunProcess lrun(
      joined({"--strategy", "horovod", "-n", "3", "--max-restarts", "1"}, joined(kWorker, {"--fail-once", "1"})));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.out() << lrun.err();
  EXPECT_EQ(results(lrun.out()).size(), 3U) << lrun.out() << lrun.err();
}

TEST(Horovod, MeetsAgainAfterARestartOfSeveralNodes) {
  Job job({"--num_nodes", "2", "--strategy", "horovod", "-n", "2", "--max-restarts", "1"});
  LrunProcess& first = job.start({}, joined(kWorker, {"--fail-once", "3"}));
  LrunProcess& second = job.start({}, joined(kWorker, {"--fail-once", "3"}));
  EXPECT_EQ(first.wait().code, 0) << first.out() << first.err();
  EXPECT_EQ(second.wait().code, 0) << second.out() << second.err();
  EXPECT_EQ(results(first.out() + second.out()).size(), 4U) << first.err() << second.err();
}

TEST(Horovod, EndsWithTheCodeOfTheRankThatFailed) {
  LrunProcess lrun(
      joined({"--strategy", "horovod", "-n", "2", "--grace", "1s"}, joined(kWorker, {"--fail-always", "1"})));
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "exited with code 3")) << lrun.err();
}

TEST(Horovod, NamesTheRanksThatNeverBeganToMeet) {
  with_more_time([](int factor) -> std::string {
    LrunProcess lrun(joined(
        {"--strategy", "horovod", "-n", "3", "--start-timeout", std::to_string(2 * factor) + "s", "--grace", "1s"},
        joined(kWorker, {"--silent", "1"})));
    EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
    const bool names_it_alone = contains(lrun.err(), "rank 1 ") && !contains(lrun.err(), "ranks 0");
    return names_it_alone ? "" : "it does not name rank 1 alone: " + lrun.err();
  });
}

TEST(Horovod, ShowsItsPlan) {
  LrunProcess text({"--strategy", "horovod", "-n", "2", "--dry-run", "true"});
  EXPECT_EQ(text.wait().code, 0) << text.err();
  EXPECT_THAT(text.out(), mentions({"HOROVOD_SIZE=2", "HOROVOD_CONTROLLER=gloo", "HOROVOD_CPU_OPERATIONS=gloo"}));
  EXPECT_TRUE(contains(text.err(), "note: Horovod averages gradients over 2 workers")) << text.err();
  LrunProcess json({"--strategy", "horovod", "-n", "2", "--dry-run=json", "true"});
  EXPECT_EQ(json.wait().code, 0) << json.err();
  EXPECT_TRUE(contains(json.out(), "\"HOROVOD_CROSS_SIZE\": \"1\"")) << json.out();
  EXPECT_TRUE(contains(json.out(), "\"HOROVOD_GLOO_RENDEZVOUS_PORT\": null")) << json.out();
}

}  // namespace
}  // namespace lrun::test
