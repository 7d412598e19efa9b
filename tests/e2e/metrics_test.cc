// --metrics: what Prometheus and its like see of a run.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <list>
#include <set>
#include <sstream>
#include <string>

#include "base/small_file.h"
#include "support/beside.h"
#include "support/launchers_of_a_job.h"
#include "support/lrun_process.h"
#include "support/raw_socket.h"

namespace lrun::test {
namespace {

using launcher::RawSocket;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::size_t kMuch = std::size_t{1} << 20U;

/// The port that lrun has printed; 0: it has not.
std::uint16_t port_of_metrics(LrunProcess& lrun) {
  const std::string before = "lrun: note: metrics are at http://127.0.0.1:";
  EXPECT_TRUE(lrun.wait_for("/metrics\n")) << lrun.err();
  const std::size_t begin = lrun.err().find(before);
  return begin == std::string::npos ? std::uint16_t{0}
                                    : static_cast<std::uint16_t>(std::stoi(lrun.err().substr(begin + before.size())));
}

std::string answer_to(std::uint16_t port, const std::string& request) {
  RawSocket client(port);
  EXPECT_TRUE(client.send(request + "\r\nHost: localhost\r\n\r\n"));
  return client.receive(kMuch);
}

std::string metrics_at(std::uint16_t port) { return answer_to(port, "GET /metrics HTTP/1.1"); }

std::string text_of_file(const std::filesystem::path& path) {
  return read_small_file(path.string(), kMuch).value_or("there is no '" + path.string() + "'");
}

TEST(Metrics, AreAtAPortWhileTheRunLasts) {
  LrunProcess lrun({"-n", "2", "--metrics", "0", "sh", "-c", "echo ready; exec sleep 1000"});
  const std::uint16_t port = port_of_metrics(lrun);
  ASSERT_TRUE(lrun.wait_for("[1] ready"));
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  EXPECT_THAT(metrics_at(port),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                    HasSubstr("\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
                    HasSubstr("phase=\"running\"} 1\n"), HasSubstr("rank=\"0\",local_rank=\"0\"} 1\n"),
                    HasSubstr("rank=\"1\",local_rank=\"1\"} 1\n"), HasSubstr("\nlrun_rank_cpu_seconds_total{"),
                    HasSubstr("\nlrun_rank_quiet_seconds{"), EndsWith("\n# EOF\n")));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
}

TEST(Metrics, AreNothingButWhatIsAskedFor) {
  LrunProcess lrun({"-n", "1", "--metrics", "0", "sleep", "1000"});
  const std::uint16_t port = port_of_metrics(lrun);
  EXPECT_THAT(answer_to(port, "GET / HTTP/1.1"),
              AllOf(StartsWith("HTTP/1.1 404 Not Found\r\n"), EndsWith("\r\n\r\nmetrics are at /metrics\n")));
  EXPECT_THAT(answer_to(port, "POST /metrics HTTP/1.1"), StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(answer_to(port, "nonsense"), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(answer_to(port, "GET /metrics?name=x HTTP/1.0"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(Metrics, CannotBeKeptFromOthersByClientsThatSayNothing) {
  LrunProcess lrun({"-n", "1", "--metrics", "0", "sleep", "1000"});
  const std::uint16_t port = port_of_metrics(lrun);
  std::list<RawSocket> silent;
  for (int i = 0; i < 40; ++i) silent.emplace_back(port);
  EXPECT_THAT(metrics_at(port), EndsWith("\n# EOF\n"));
  EXPECT_TRUE(silent.front().is_closed()) << "the oldest makes room";
}

TEST(Metrics, TellTheSilenceOfARankThatHasPrintedNothingAndNoneOfOneThatHasEnded) {
  LrunProcess lrun(
      {"-n", "2", "--metrics", "0", "sh", "-c", "[ $RANK = 1 ] && { echo done; exit 0; }; exec sleep 1000"});
  const std::uint16_t port = port_of_metrics(lrun);
  std::string text;
  ASSERT_TRUE(eventually([&] {
    text = metrics_at(port);
    return text.find("rank=\"1\",local_rank=\"1\"} 0\n") < text.find("# TYPE lrun_rank_stopped");
  })) << text;
  EXPECT_THAT(text, ContainsRegex("\nlrun_rank_quiet_seconds\\{[^}]*,rank=\"0\""));
  EXPECT_THAT(text, Not(ContainsRegex("\nlrun_rank_quiet_seconds\\{[^}]*,rank=\"1\"")));
}

TEST(Metrics, CountRestarts) {
  LrunProcess lrun({"-n", "1", "--metrics", "0", "--max-restarts", "1", "--restart-backoff", "0s", "sh", "-c",
                    "[ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 3; echo again; exec sleep 1000"});
  const std::uint16_t port = port_of_metrics(lrun);
  ASSERT_TRUE(lrun.wait_for("again"));
  EXPECT_THAT(metrics_at(port), ContainsRegex("\nlrun_run_restarts_total\\{[^}]*\\} 1\n"));
}

TEST(Metrics, AreInAFileThatHasTheExitCodeAtTheEnd) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "lrun.prom";
  std::ofstream(file) << "# TYPE lrun_run_info gauge\n";  // of a run before
  LrunProcess lrun({"-n", "2", "--metrics", file.string(), "sh", "-c",
                    "[ $RANK = 0 ] && exec sleep 1000; echo ready; until [ -e $1 ]; do sleep 0.01; done; exit 7", "sh",
                    (folder.path() / "go").string()},
                   {.before_exec = [] { ::umask(077); }});
  ASSERT_TRUE(lrun.wait_for("ready")) << lrun.err();
  EXPECT_THAT(text_of_file(file), AllOf(HasSubstr("phase=\"running\"} 1\n"), Not(HasSubstr("exit_code"))));
  std::ofstream(folder.path() / "go");
  EXPECT_EQ(lrun.wait().code, 7) << lrun.err();
  EXPECT_THAT(text_of_file(file),
              AllOf(HasSubstr("phase=\"over\"} 1\n"), ContainsRegex("\nlrun_run_exit_code\\{[^}]*\\} 7\n"),
                    HasSubstr("\nlrun_rank_cpu_seconds_total{"), Not(HasSubstr("quiet_seconds{"))));
  struct stat facts {};
  ASSERT_EQ(::stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0644U) << "its reader is another user";
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".new"));
}

TEST(Metrics, OfALauncherARankAreInAFileEach) {
  const TemporaryFolder folder;
  const std::string job = std::to_string(free_port());
  std::list<LrunProcess> tasks;
  for (const char* const rank : {"0", "1"}) {
    tasks.emplace_back(Words{"--metrics", (folder.path() / "lrun.prom").string(), "true"},
                       LrunProcess::Options{.environment = {{"OMPI_COMM_WORLD_RANK", rank},
                                                            {"OMPI_COMM_WORLD_SIZE", "2"},
                                                            {"OMPI_COMM_WORLD_LOCAL_RANK", rank},
                                                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                                            {"OMPI_MCA_orte_num_nodes", "1"},
                                                            {"PMIX_NAMESPACE", job}}});
  }
  for (LrunProcess& task : tasks) EXPECT_EQ(task.wait().code, 0) << task.err();
  std::set<std::string> names;
  std::set<std::string> samples;
  std::size_t num_samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    names.insert(name.substr(name.rfind('-')));
    std::istringstream lines(text_of_file(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('#')) continue;
      ++num_samples;
      samples.insert(line.substr(0, line.find('}')));
    }
  }
  EXPECT_THAT(names, ElementsAre("-0.prom", "-1.prom"));
  EXPECT_GT(num_samples, 0U);
  EXPECT_EQ(samples.size(), num_samples) << "one collector may read both files";
}

TEST(Metrics, ThatCannotBeOfferedCostAWarning) {
  LrunProcess first({"-n", "1", "--metrics", "0", "sleep", "1000"});
  const std::string port = std::to_string(port_of_metrics(first));
  LrunProcess second({"-n", "1", "--metrics", port, "true"});
  EXPECT_EQ(second.wait().code, 0) << second.err();
  EXPECT_EQ(second.err(), fmt::format("lrun: warning: metrics: cannot listen on 127.0.0.1:{}: Address already in use; "
                                      "the run goes on without them\n",
                                      port));
}

TEST(Metrics, ReplaceNoFileOfOthers) {
  const TemporaryFolder folder;
  const std::filesystem::path program = folder.path() / "train";
  std::ofstream(program) << "#!/bin/sh\n";
  std::filesystem::create_symlink(program, folder.path() / "link.prom");
  ASSERT_EQ(::mkfifo((folder.path() / "fifo.prom").c_str(), 0600), 0);
  for (const char* const name : {"train", "link.prom", "fifo.prom"}) {
    const std::string file = (folder.path() / name).string();
    LrunProcess lrun({"-n", "1", "--metrics", file, "true"});
    EXPECT_EQ(lrun.wait().code, 125);
    EXPECT_THAT(lrun.err(), StartsWith("lrun: error: cannot write metrics to '" + file + "': it is something else"));
  }
  EXPECT_EQ(text_of_file(program), "#!/bin/sh\n");
  LrunProcess none({"-n", "1", "--metrics", "/dev/null", "true"});
  EXPECT_EQ(none.wait().code, 0) << none.err();
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  LrunProcess nowhere({"-n", "1", "--metrics", "/no/such/folder/lrun.prom", "true"});
  EXPECT_EQ(nowhere.wait().code, 125);
  EXPECT_THAT(nowhere.err(), HasSubstr("lrun: error: cannot write metrics to '/no/such/folder/lrun.prom': No such"));
}

}  // namespace
}  // namespace lrun::test
