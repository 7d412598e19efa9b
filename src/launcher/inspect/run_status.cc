// In: a run's status, or a line of JSON. Out: the other of the two. Launchers answer with such lines, and `lrun status`
// reads and prints them. Pure.
#include "inspect/run_status.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/json.h"
#include "base/shortened.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostPercent = 10'000'000;

Json known(std::int64_t value) { return value < 0 ? Json() : Json(value); }

Json rate_of(const RankUse& use) {
  constexpr double kSeconds = 1000;
  return use.steps_in_ks < 0 ? Json() : Json(static_cast<double>(use.steps_in_ks) / kSeconds);
}

Json json_of(const WorkerStatus& worker) {
  Json gpus = Json::array();
  for (const GpuUse& use : worker.gpus) {
    gpus.push_back({{"gpu", use.gpu}, {"memory_mib", known(use.memory_mib)}, {"percent", known(use.percent)}});
  }
  return {
      {"rank", worker.rank},
      {"local_rank", worker.local_rank},
      {"pid", worker.pid},
      {"running", worker.running},
      {"stopped", worker.stopped},
      {"ending", worker.ending},
      {"last_line", worker.last_line},
      {"gpus", std::move(gpus)},
      {"quiet_ms", known(worker.quiet_ms)},
      {"steps",
       {{"count", worker.steps.count}, {"took_ms", worker.steps.took_ms}, {"last_ms_ago", worker.steps.last_ms_ago}}},
      {"steps_per_second", rate_of(worker.use)},
      {"steps_in_ks", known(worker.use.steps_in_ks)},
      {"lived_ms", known(worker.use.lived_ms)},
      {"cpu_ms", known(worker.use.cpu_ms)},
      {"cpu_percent", known(worker.use.cpu_percent)},
      {"resident_bytes", known(worker.use.resident_bytes)},
      {"unusual", worker.unusual}};
}

WorkerStatus worker_from(const Json& json) {
  WorkerStatus worker;
  worker.rank = json.at("rank").get<int>();
  worker.local_rank = json.at("local_rank").get<int>();
  worker.pid = json.at("pid").get<pid_t>();
  worker.running = json.at("running").get<bool>();
  worker.stopped = json.value("stopped", false);  // an older lrun lacks it
  worker.ending = json.at("ending").get<std::string>();
  worker.last_line = json.at("last_line").get<std::string>();
  const Json quiet = json.value("quiet_ms", Json());  // an older lrun lacks this and steps
  if (!quiet.is_null()) worker.quiet_ms = json_integer<std::int64_t>(quiet);
  if (const auto steps = json.find("steps"); steps != json.end()) {
    worker.steps.count = json_integer<std::int64_t>(steps->at("count"));
    worker.steps.took_ms = json_integer<std::int64_t>(steps->at("took_ms"));
    worker.steps.last_ms_ago = json_integer<std::int64_t>(steps->at("last_ms_ago"));
  }
  // Only one of another host says these; an older lrun lacks them.
  const auto use = [&json](const char* name) {
    const Json value = json.value(name, Json());
    return value.is_null() ? std::int64_t{-1} : json_integer<std::int64_t>(value);
  };
  worker.use.lived_ms = use("lived_ms");
  worker.use.cpu_ms = use("cpu_ms");
  worker.use.cpu_percent = static_cast<int>(std::clamp(use("cpu_percent"), std::int64_t{-1}, kMostPercent));
  worker.use.resident_bytes = use("resident_bytes");
  worker.use.steps_in_ks = use("steps_in_ks");
  return worker;
}

bool in_range(const RunStatus& status) {
  for (const WorkerStatus& worker : status.workers) {
    if (worker.rank < 0 || worker.local_rank < 0 || worker.pid <= 0) return false;
  }
  const int least_workers = status.hosts.empty() ? 1 : 0;
  return status.pid > 0 && status.world_size >= least_workers && status.attempt >= 0 && status.nodes > 0 &&
         status.ranks_left_out >= 0;
}

}  // namespace

std::string to_json(const RunStatus& status) {
  Json workers = Json::array();
  for (const WorkerStatus& worker : status.workers) workers.push_back(json_of(worker));
  Json hosts = Json::array();
  for (const HostStatus& host : status.hosts) hosts.push_back({{"host", host.name}, {"state", host.state}});
  const Json json{{"schema", 1},
                  {"run_id", status.run_id},
                  {"host", status.host},
                  {"job", status.job},
                  {"nodes", status.nodes},
                  {"pid", status.pid},
                  {"started_ms", status.started_ms},
                  {"running_ms", status.running_ms},
                  {"argv", status.argv},
                  {"strategy", status.strategy},
                  {"world_size", status.world_size},
                  {"attempt", status.attempt},
                  {"master_port", status.master_port},
                  {"phase", status.phase},
                  {"meets_at", status.meets_at},
                  {"waits_for", status.waits_for},
                  {"gives_up_in_ms", known(status.gives_up_in_ms)},
                  {"suspended", status.suspended},
                  {"stopping", status.stopping()},
                  {"workers", workers},
                  {"ranks_left_out", status.ranks_left_out},
                  {"hosts", hosts}};
  return json_text(json);
}

std::string to_json_within(RunStatus status, std::size_t most) {
  status.argv.clear();
  for (const std::size_t line_bytes : {400U, 100U, 30U, 0U}) {
    for (WorkerStatus& worker : status.workers) {
      worker.last_line = line_bytes == 0 ? std::string() : shortened(worker.last_line, line_bytes);
    }
    std::string json = to_json(status);
    if (json.size() <= most) return json;
  }
  while (true) {
    const std::size_t kept = status.workers.size() / 2;
    status.ranks_left_out += static_cast<int>(status.workers.size() - kept);
    status.workers.resize(kept);
    std::string json = to_json(status);
    if (json.size() <= most || kept == 0) return json.size() <= most ? json : std::string();
  }
}

std::optional<RunStatus> run_status_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    RunStatus status;
    status.run_id = json.at("run_id").get<std::string>();
    status.host = json.value("host", std::string());
    status.nodes = json.value("nodes", 1);  // in_range() looks
    status.pid = json.at("pid").get<pid_t>();
    status.started_ms = json_integer<std::int64_t>(json.at("started_ms"));
    status.running_ms = json.value("running_ms", std::int64_t{0});
    status.argv = json.at("argv").get<std::vector<std::string>>();
    status.strategy = json.at("strategy").get<std::string>();
    status.world_size = json.at("world_size").get<int>();
    status.attempt = json.at("attempt").get<int>();
    status.master_port = json.at("master_port").get<int>();
    status.phase = json.at("phase").get<std::string>();
    status.meets_at = json.value("meets_at", std::string());  // an older lrun lacks both
    status.waits_for = json.value("waits_for", std::string());
    if (const Json limit = json.value("gives_up_in_ms", Json()); !limit.is_null()) {  // an older lrun lacks it
      status.gives_up_in_ms = json_integer<std::int64_t>(limit);
    }
    status.suspended = json.at("suspended").get<bool>();
    status.ranks_left_out = json_integer(json.value("ranks_left_out", Json(0)));  // an older lrun lacks it
    for (const Json& worker : json.at("workers")) status.workers.push_back(worker_from(worker));
    for (const Json& host : json.value("hosts", Json::array())) {
      status.hosts.push_back({host.at("host").get<std::string>(), host.at("state").get<std::string>()});
    }
    return in_range(status) ? std::optional(std::move(status)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
