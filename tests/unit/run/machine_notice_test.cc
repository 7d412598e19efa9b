#include "run/machine_notice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "store/listening_socket.h"
#include "support/patience.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using Place = NoticeSource::Kind;

/// An answer to a request that has this header.
struct MetadataAnswer {
  std::string header;
  std::string bytes;  ///< the whole answer; empty: none comes
};
using Answers = std::map<std::string, MetadataAnswer>;  // by method and target

/// A metadata service in a thread of the test. Requests without the header of their answer get 400, and unknown ones
/// 404.
class FakeMetadata {
 public:
  explicit FakeMetadata(Answers answers) : answers_(std::move(answers)) {
    thread_ = std::thread([this] { serve(); });
  }
  FakeMetadata(const FakeMetadata&) = delete;
  FakeMetadata& operator=(const FakeMetadata&) = delete;
  ~FakeMetadata() {
    wake_.write.reset();
    thread_.join();
  }

  [[nodiscard]] NoticeLook look(Place kind, Duration limit = Duration(20'000)) const {
    return NoticeLooker(NoticeSource{kind, {}}, place()).look(steady_now() + limit);
  }
  [[nodiscard]] MetadataPlace place() const { return {"127.0.0.1", port_of_socket(listener_.get())}; }
  [[nodiscard]] int requests() const { return requests_; }

 private:
  void serve() {
    while (true) {
      pollfd ready[] = {{listener_.get(), POLLIN, 0}, {wake_.read.get(), POLLIN, 0}};
      ::poll(ready, 2, -1);
      if (ready[1].revents != 0) return;
      Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket) continue;
      std::string request;
      char byte = 0;
      while (!request.ends_with("\r\n\r\n") && ::recv(socket.get(), &byte, 1, 0) == 1) request += byte;
      ++requests_;
      const std::string answer = answer_to(request);
      if (answer.empty()) {
        silent_.push_back(std::move(socket));
      } else {
        ::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      }
    }
  }

  [[nodiscard]] std::string answer_to(const std::string& request) const {
    const auto found = answers_.find(request.substr(0, request.find(" HTTP/1.1\r\n")));
    if (found == answers_.end()) return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    const bool has_header = request.find("\r\n" + found->second.header + "\r\n") != std::string::npos;
    return has_header ? found->second.bytes : "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
  }

  Answers answers_;
  Fd listener_ = open_listening_socket(StoreReach::kLoopback, 0);
  Pipe wake_ = make_pipe();
  std::vector<Fd> silent_;
  std::atomic<int> requests_{0};
  std::thread thread_;
};

const std::string kAwsToken = "PUT /latest/api/token";
const std::string kAwsAction = "GET /latest/meta-data/spot/instance-action";
const std::string kAzureEvents = "GET /metadata/scheduledevents?api-version=2020-07-01";
const std::string kAzureName = "GET /metadata/instance/compute/name?api-version=2021-02-01&format=text";
const std::string kGcpPreempted = "GET /computeMetadata/v1/instance/preempted";

std::string ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
MetadataAnswer token() { return {"X-aws-ec2-metadata-token-ttl-seconds: 60", ok("t")}; }
MetadataAnswer aws(const std::string& bytes) { return {"X-aws-ec2-metadata-token: t", bytes}; }
MetadataAnswer azure(const std::string& bytes) { return {"Metadata: true", bytes}; }
MetadataAnswer gcp(const std::string& bytes) { return {"Metadata-Flavor: Google", bytes}; }

constexpr const char* kUnknownToAws = "the metadata service of AWS cannot be asked: its answer is not understood";

TEST(MachineNotice, OfAwsIsAnActionWithItsTime) {
  EXPECT_EQ(notice_of_aws(R"({"action": "terminate", "time": "2026-11-30T08:22:00Z"})").notice,
            "notice from AWS: terminate at 2026-11-30T08:22:00Z");
  EXPECT_EQ(notice_of_aws(R"({"action": "stop"})").notice, "notice from AWS: stop");
  for (const char* const other : {"", "{}", "[]", "{", R"({"action": 7})", "<html>"}) {
    EXPECT_EQ(notice_of_aws(other), (NoticeLook{"", kUnknownToAws})) << other;
  }
}

TEST(MachineNotice, OfAzureIsAnEventThatTakesThisMachineAway) {
  const std::string preempt =
      R"({"Events": [{"EventType": "Preempt", "Resources": ["VM1"], "NotBefore": "Mon, 30 Nov 2026 08:22:00 GMT"}]})";
  EXPECT_EQ(notice_of_azure(preempt, "vm1\n").notice, "notice from Azure: Preempt at Mon, 30 Nov 2026 08:22:00 GMT");
  EXPECT_EQ(notice_of_azure(preempt, "vm2"), NoticeLook{}) << "another machine of the set";
  EXPECT_EQ(notice_of_azure(R"({"Events": [{"EventType": "Freeze", "Resources": ["vm1"]}]})", "vm1"), NoticeLook{});
  EXPECT_EQ(notice_of_azure(R"({"Events": [7, {"EventType": "Reboot", "Resources": ["vm1"]}]})", "vm1").notice,
            "notice from Azure: Reboot");
  EXPECT_EQ(notice_of_azure(R"({"Events": [{"EventType": "Reboot"}]})", "vm1"), NoticeLook{}) << "of nobody";
  for (const char* const other : {"", "{}", "[]", R"({"Events": {}})"}) {
    EXPECT_THAT(notice_of_azure(other, "vm1").problem, EndsWith("its answer is not understood")) << other;
  }
}

TEST(MachineNotice, OfGoogleCloudIsPreemption) {
  EXPECT_EQ(notice_of_gcp("TRUE\n").notice, "notice from Google Cloud: this machine is preempted");
  EXPECT_EQ(notice_of_gcp("FALSE"), NoticeLook{});
  EXPECT_THAT(notice_of_gcp("").problem, EndsWith("its answer is not understood"));
}

TEST(MachineNotice, IsAskedForAsEachCloudWantsIt) {
  const FakeMetadata aws_service({{kAwsToken, token()}, {kAwsAction, aws(ok(R"({"action": "terminate"})"))}});
  EXPECT_EQ(aws_service.look(Place::kAws), (NoticeLook{"notice from AWS: terminate", ""}));
  const FakeMetadata azure_service(
      {{kAzureEvents, azure(ok(R"({"Events": [{"EventType": "Reboot", "Resources": ["vm1"]}]})"))},
       {kAzureName, azure(ok("vm1"))}});
  EXPECT_EQ(azure_service.look(Place::kAzure), (NoticeLook{"notice from Azure: Reboot", ""}));
  const FakeMetadata gcp_service(Answers{{kGcpPreempted, gcp(ok("TRUE"))}});
  EXPECT_EQ(gcp_service.look(Place::kGcp).notice, "notice from Google Cloud: this machine is preempted");
}

TEST(MachineNotice, IsMissingOnAMachineThatStays) {
  const FakeMetadata aws_service(Answers{{kAwsToken, token()}});
  EXPECT_EQ(aws_service.look(Place::kAws), NoticeLook{});
  const FakeMetadata azure_service(
      {{kAzureEvents, azure(ok(R"({"DocumentIncarnation": 1, "Events": []})"))}, {kAzureName, azure(ok("vm1"))}});
  EXPECT_EQ(azure_service.look(Place::kAzure), NoticeLook{});
  const FakeMetadata gcp_service(Answers{{kGcpPreempted, gcp(ok("FALSE"))}});
  EXPECT_EQ(gcp_service.look(Place::kGcp), NoticeLook{});
}

TEST(MachineNotice, IsUnknownOnAMachineOfAnotherCloud) {
  const FakeMetadata other(Answers{});
  EXPECT_EQ(other.look(Place::kAws).problem, "the metadata service of AWS cannot be asked: it answers 404");
  EXPECT_EQ(other.look(Place::kAzure).problem, "the metadata service of Azure cannot be asked: it answers 404");
  EXPECT_EQ(other.look(Place::kGcp).problem, "the metadata service of Google Cloud cannot be asked: it answers 404");
}

TEST(MachineNotice, IsUnknownWhereTheNameOfTheMachineIs) {
  const FakeMetadata service(
      Answers{{kAzureEvents, azure(ok(R"({"Events": [{"EventType": "Reboot", "Resources": ["vm1"]}]})"))}});
  EXPECT_EQ(service.look(Place::kAzure),
            (NoticeLook{"", "the metadata service of Azure cannot be asked: it answers 404"}));
}

TEST(MachineNotice, IsUnknownWhereNobodyAnswers) {
  const Fd kept = keep_port(StoreReach::kLoopback, 0);
  const NoticeLook refused =
      NoticeLooker(NoticeSource{Place::kAws, {}}, {"127.0.0.1", port_of_socket(kept.get())}).look(test::soon());
  EXPECT_EQ(refused.problem, "the metadata service of AWS cannot be asked: Connection refused");
  const FakeMetadata silent(Answers{{kGcpPreempted, gcp("")}});
  EXPECT_EQ(silent.look(Place::kGcp, Duration(50)).problem,
            "the metadata service of Google Cloud cannot be asked: Connection timed out");
  EXPECT_TRUE(silent.look(Place::kGcp, Duration(50)).may_pass);
}

TEST(MachineNotice, MayBeKnownLaterWhereThePlaceIsBusy) {
  for (const std::string busy : {"429 Too Many Requests", "503 Service Unavailable"}) {
    const FakeMetadata service(Answers{{kGcpPreempted, gcp("HTTP/1.1 " + busy + "\r\nContent-Length: 0\r\n\r\n")}});
    EXPECT_TRUE(service.look(Place::kGcp).may_pass) << busy;
  }
  EXPECT_FALSE(FakeMetadata(Answers{}).look(Place::kGcp).may_pass) << "of another cloud";
}

TEST(MachineNotice, AsksForTheNameOfTheMachineOnce) {
  const FakeMetadata service({{kAzureEvents, azure(ok(R"({"Events": []})"))}, {kAzureName, azure(ok("vm1"))}});
  NoticeLooker looker(NoticeSource{Place::kAzure, {}}, service.place());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(looker.look(test::soon()), NoticeLook{});
  EXPECT_EQ(service.requests(), 4);
}

TEST(MachineNotice, IsUnknownWhereTheAnswerIsBroken) {
  const std::string moved =
      "HTTP/1.1 301 Moved Permanently\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n";
  const std::string cut_off = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nTRUE";
  const std::string endless = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nTRUE";
  for (const std::string& bytes : {moved, cut_off, endless, std::string("no HTTP\r\n\r\n"), ok("maybe")}) {
    const FakeMetadata service(Answers{{kGcpPreempted, gcp(bytes)}});
    const NoticeLook look = service.look(Place::kGcp);
    EXPECT_EQ(look.notice, "") << bytes;
    EXPECT_THAT(look.problem, HasSubstr("the metadata service of Google Cloud cannot be asked: ")) << bytes;
  }
  const FakeMetadata two_lines(Answers{{kAwsToken, {token().header, ok("a\r\nX-Other: b")}}});
  EXPECT_EQ(two_lines.look(Place::kAws).problem, kUnknownToAws) << "it would be sent as another header";
}

TEST(MachineNotice, IsAFileWithItsFirstLine) {
  const test::TemporaryFolder folder;
  const NoticeSource source{Place::kFile, (folder.path() / "going").string()};
  EXPECT_EQ(NoticeLooker(source).look(test::soon()), NoticeLook{});
  std::ofstream(source.file).flush();
  EXPECT_EQ(NoticeLooker(source).look(test::soon()).notice, "notice from '" + source.file + "'");
  std::ofstream(source.file) << " maintenance at 12 \nmore\n";
  EXPECT_EQ(NoticeLooker(source).look(test::soon()).notice, "notice from '" + source.file + "': maintenance at 12");
}

TEST(MachineNotice, IsNoFolderAndNoPipe) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(NoticeLooker({Place::kFile, folder.path().string()}).look(test::soon()),
            (NoticeLook{"", "'" + folder.path().string() + "' is no regular file"}));
  const std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(NoticeLooker({Place::kFile, pipe}).look(test::soon()).notice, "");
}

}  // namespace
}  // namespace lrun::launcher
