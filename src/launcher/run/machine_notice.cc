// In: a place where clouds, or somebody with a file, say that a machine is about to go. Out: what they say, or why it
// is not known. NoticeMonitor looks in a child process: a file system and a network may hang.
#include "run/machine_notice.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/json.h"
#include "base/shortened.h"
#include "base/small_file.h"
#include "base/split.h"
#include "plan/named_value.h"
#include "store/http_response.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostNoticeBytes = 200;
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kEndsOfLine = "\r\n";
constexpr std::string_view kNotUnderstood = "its answer is not understood";
constexpr int kOk = 200;
constexpr int kNotFound = 404;
constexpr int kTooManyRequests = 429;
constexpr int kServerError = 500;
// The line of a file may be written a moment after it was made.
constexpr Duration kLinePause(100);

/// An answer of a metadata service, or why there is none.
struct Metadata {
  int status = 0;
  std::string body;
  std::string problem;
  bool is_late = false;  ///< it has not come in time
};

void send_all(int socket, std::string_view bytes, SteadyTime deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) throw std::system_error(errno, std::generic_category());
    if (!bytes.empty() && !poll_until(socket, POLLOUT, deadline)) {
      throw std::system_error(ETIMEDOUT, std::generic_category());
    }
  }
}

Metadata receive(int socket, SteadyTime deadline) {
  HttpResponseReader reader;
  while (poll_until(socket, POLLIN, deadline)) {
    char bytes[4096];
    const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) throw std::system_error(errno, std::generic_category());
    std::optional<HttpResponse> whole =
        count == 0 ? reader.end() : reader.feed({bytes, static_cast<std::size_t>(count)});
    if (whole) return {whole->status, std::move(whole->body), {}};
    if (!reader.refusal().empty() || count == 0) return {0, {}, std::string(kNotUnderstood)};
  }
  throw std::system_error(ETIMEDOUT, std::generic_category());
}

/// \param headers  each with its CR LF
Metadata ask(const MetadataPlace& place, std::string_view what, std::string_view headers, SteadyTime deadline) {
  try {
    const Fd socket = connect_to(place.address, place.port, deadline);
    send_all(socket.get(),
             fmt::format("{} HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n", what, place.address, headers),
             deadline);
    return receive(socket.get(), deadline);
  } catch (const std::system_error& error) {
    return {0, {}, error.code().message(), error.code() == std::errc::timed_out};
  }
}

NoticeLook unknown(std::string_view cloud, std::string_view why, bool may_pass = false) {
  return {{}, fmt::format("the metadata service of {} cannot be asked: {}", cloud, why), may_pass};
}

NoticeLook unknown(std::string_view cloud, const Metadata& answer) {
  if (!answer.problem.empty()) return unknown(cloud, answer.problem, answer.is_late);
  const bool is_busy = answer.status == kTooManyRequests || answer.status >= kServerError;
  return unknown(cloud, fmt::format("it answers {}", answer.status), is_busy);
}

NoticeLook look_at_aws(const MetadataPlace& place, SteadyTime deadline) {
  const Metadata token = ask(place, "PUT /latest/api/token",
                             "X-aws-ec2-metadata-token-ttl-seconds: 60\r\nContent-Length: 0\r\n", deadline);
  if (token.status != kOk) return unknown("AWS", token);
  if (token.body.find_first_of(kEndsOfLine) != std::string::npos) return unknown("AWS", kNotUnderstood);
  const Metadata action = ask(place, "GET /latest/meta-data/spot/instance-action",
                              fmt::format("X-aws-ec2-metadata-token: {}\r\n", token.body), deadline);
  if (action.status == kNotFound) return {};  // its answer where nothing is to happen
  if (action.status != kOk) return unknown("AWS", action);
  return notice_of_aws(action.body);
}

NoticeLook look_at_gcp(const MetadataPlace& place, SteadyTime deadline) {
  const Metadata preempted =
      ask(place, "GET /computeMetadata/v1/instance/preempted", "Metadata-Flavor: Google\r\n", deadline);
  if (preempted.status != kOk) return unknown("Google Cloud", preempted);
  return notice_of_gcp(preempted.body);
}

std::string first_line_of(const std::string& file) {
  if (::access(file.c_str(), R_OK) != 0) return "it cannot be read: " + std::generic_category().message(errno);
  const std::string head = read_file_head(file, kMostNoticeBytes);
  return std::string(trimmed(std::string_view(head).substr(0, head.find('\n')), kBlanks));
}

/// Only a regular file is a notice: a folder was mistyped, and a pipe would keep its reader waiting.
NoticeLook look_at_file(const std::string& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) {
    const int error = errno;
    if (error == ENOENT) return {};
    return {{}, fmt::format("'{}': {}", file, std::generic_category().message(error))};
  }
  if (!S_ISREG(found.st_mode)) return {{}, fmt::format("'{}' is no regular file", file)};
  std::string line = first_line_of(file);
  if (line.empty()) {
    std::this_thread::sleep_for(kLinePause);
    line = first_line_of(file);
  }
  return {fmt::format("notice from '{}'{}{}", file, line.empty() ? "" : ": ", line), {}};
}

std::string text_in(const nlohmann::json& object, const char* name) {
  const auto value = object.find(name);
  return value != object.end() && value->is_string() ? shortened(value->get<std::string>(), kMostNoticeBytes) : "";
}

/// ' at 2026-11-30T08:22:00Z'. Empty: the time is not known.
std::string at(const std::string& time) { return time.empty() ? "" : " at " + time; }

bool concerns(const nlohmann::json& event, const std::string& machine) {
  const auto resources = event.find("Resources");
  if (resources == event.end() || !resources->is_array()) return false;
  return std::any_of(resources->begin(), resources->end(), [&](const nlohmann::json& one) {
    return one.is_string() && lower_case(one.get<std::string>()) == machine;
  });
}

}  // namespace

NoticeLook notice_of_aws(std::string_view json) {
  const nlohmann::json answer = nlohmann::json::parse(json, nullptr, false);
  const std::string action = answer.is_object() ? text_in(answer, "action") : "";
  if (action.empty()) return unknown("AWS", kNotUnderstood);
  return {fmt::format("notice from AWS: {}{}", action, at(text_in(answer, "time"))), {}};
}

NoticeLook notice_of_azure(std::string_view json, std::string_view machine) {
  const nlohmann::json answer = nlohmann::json::parse(json, nullptr, false);
  const auto events = answer.is_object() ? answer.find("Events") : answer.end();
  if (!answer.is_object() || events == answer.end() || !events->is_array()) return unknown("Azure", kNotUnderstood);
  const std::string name = lower_case(std::string(trimmed(machine, kBlanks)));
  for (const nlohmann::json& event : *events) {
    if (!event.is_object() || !concerns(event, name)) continue;
    const std::string type = text_in(event, "EventType");
    const bool takes_it = type == "Preempt" || type == "Terminate" || type == "Reboot" || type == "Redeploy";
    if (takes_it) return {fmt::format("notice from Azure: {}{}", type, at(text_in(event, "NotBefore"))), {}};
  }
  return {};
}

NoticeLook notice_of_gcp(std::string_view preempted) {
  const std::string_view answer = trimmed(preempted, kBlanks);
  if (answer == "TRUE") return {"notice from Google Cloud: this machine is preempted", {}};
  return answer == "FALSE" ? NoticeLook{} : unknown("Google Cloud", kNotUnderstood);
}

NoticeLooker::NoticeLooker(NoticeSource source, MetadataPlace place)
    : source_(std::move(source)), place_(std::move(place)) {}

NoticeLook NoticeLooker::look(SteadyTime deadline) {
  switch (source_.kind) {
    case NoticeSource::Kind::kNowhere:
      return {};
    case NoticeSource::Kind::kFile:
      return look_at_file(source_.file);
    case NoticeSource::Kind::kAws:
      return look_at_aws(place_, deadline);
    case NoticeSource::Kind::kAzure:
      return look_at_azure(deadline);
    case NoticeSource::Kind::kGcp:
      return look_at_gcp(place_, deadline);
  }
  return {};
}

/// Azure answers five requests a second, of all processes of the machine: its name is asked for once.
NoticeLook NoticeLooker::look_at_azure(SteadyTime deadline) {
  constexpr std::string_view kHeader = "Metadata: true\r\n";
  if (azure_name_.empty()) {
    const Metadata name =
        ask(place_, "GET /metadata/instance/compute/name?api-version=2021-02-01&format=text", kHeader, deadline);
    if (name.status != kOk) return unknown("Azure", name);
    azure_name_ = trimmed(name.body, kBlanks);
  }
  const Metadata events = ask(place_, "GET /metadata/scheduledevents?api-version=2020-07-01", kHeader, deadline);
  return events.status == kOk ? notice_of_azure(events.body, azure_name_) : unknown("Azure", events);
}

}  // namespace lrun::launcher
