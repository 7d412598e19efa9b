#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/verb_table.h"
#include "report/doctor_text.h"
#include "report/explanation.h"
#include "report/goodput.h"
#include "report/result_json.h"
#include "report/runs_text.h"
#include "report/stack_text.h"
#include "report/status_text.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;
using Types = std::map<std::string, std::set<std::string>>;  ///< of each path: 'runs[].workers[].rank'

void add_types(const Json& json, const std::string& path, Types& types) {
  const bool is_whole = json.is_number_integer();
  types[path].insert(is_whole ? "integer" : json.type_name());
  for (const auto& [name, value] : json.items()) {
    if (json.is_object()) add_types(value, path.empty() ? name : path + "." + name, types);
    if (json.is_array()) add_types(value, path + "[]", types);
  }
}

/// The keys and types of all these documents, a line each.
std::string schema_of(const std::vector<std::string>& documents) {
  Types types;
  for (const std::string& document : documents) add_types(Json::parse(document), "", types);
  types.erase("");
  std::string text;
  for (const auto& [path, kinds] : types) {
    text += "  " + path + ":";
    for (const std::string& kind : kinds) text += " " + kind;
    text += "\n";
  }
  return text;
}

FailureRecord a_record() {
  FailureRecord record{.node = "a", .rank = 1};
  record.evidence = {"boom"};
  record.peak_memory_kib = 1;
  record.logs = "/logs";
  return record;
}

std::string a_result() {
  return result_json("id",
                     {.end = {.kind = RunEnd::Kind::kWorkerFailed}, .culprit = a_record(), .overruled = a_record()},
                     {a_record()}, "text", "hint");
}

std::vector<std::string> statuses() {
  const WorkerStatus worker{.gpus = {{0, 1, 2}}, .quiet_ms = 1, .use = {1, 1, 1, 1}};
  const RunStatus run{.argv = {"a"}, .gives_up_in_ms = 1, .workers = {worker, {}}, .hosts = {{"a", "running"}}};
  const std::map<std::string, std::string> ended{{"RUN", "ok"}};
  return {status_json({run}, {"RUN"}, {{"RUN", {"host"}}}, &ended), status_json({RunStatus()}, {}, {})};
}

std::vector<std::string> looks_at_machines() {
  MachineFacts facts;
  facts.host_addresses = {"::1"};
  facts.cpu_quota = 1.5;
  facts.locked_memory = 1;
  facts.machine_gpus.gpus.resize(1);
  facts.python.torch.emplace();
  facts.peers.resize(1);
  return {doctor_json(facts, {{"shm", Finding::Severity::kWarning, "text", "fix"}}), doctor_json({}, {})};
}

std::string a_stack() {
  const StackFrame frame{"f", "a.py:1", false};
  const PythonStack thread{.frames = {frame}};
  return stack_json(
      {{.state = 'S', .python = {frame}, .native = {frame}, .problems = {"why"}, .other_threads = {thread}}});
}

std::string an_explanation() {
  return explanation_json({.text = {"error"}, .others = {"rank 0: exited"}, .tried = {"attempt 0"}});
}

std::string a_goodput() { return goodput_json({.attempts = {{.run_id = "RUN"}}}, "bert"); }

TEST(Schemas, AreThoseOfTheGoldenFile) {
  const std::map<std::string, std::vector<std::string>> documents{
      {"doctor", looks_at_machines()}, {"explain", {an_explanation()}},
      {"report", {a_goodput()}},       {"runs", {runs_json({{.id = "RUN", .argv = {"a"}}})}},
      {"stack", {a_stack()}},          {"status", statuses()},
  };
  std::string text;
  for (const Verb& verb : verb_table()) {
    const bool has_json =
        std::any_of(verb.options.begin(), verb.options.end(), [](const VerbOption& it) { return it.name == "json"; });
    if (!has_json) continue;
    const auto found = documents.find(std::string(verb.name));
    ASSERT_NE(found, documents.end()) << "no document of 'lrun " << verb.name << " --json'";
    text += "lrun " + found->first + " --json\n" + schema_of(found->second);
    for (const std::string& document : found->second) EXPECT_EQ(Json::parse(document).at("schema"), 1) << verb.name;
  }
  text += "result.json\n" + schema_of({a_result(), result_json("id", {}, {}, "", "")});
  const std::string path = LRUN_GOLDEN "/schemas.golden";
  if (std::getenv("LRUN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << "fields may be added; where one goes or changes its type, 'schema' grows: "
                                   "LRUN_UPDATE_GOLDEN=1 writes "
                                << path;
}

}  // namespace
}  // namespace lrun::launcher
