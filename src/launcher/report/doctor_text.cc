// In: the facts of a machine and the findings about it. Out: the text or the JSON of `lrun doctor`. Pure.
#include "report/doctor_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/nearest.h"
#include "logs/terminal_text.h"

namespace lrun::launcher {
namespace {

using OrderedJson = nlohmann::ordered_json;

const char* name_of(Finding::Severity severity) {
  switch (severity) {
    case Finding::Severity::kProblem:
      break;
    case Finding::Severity::kWarning:
      return "warning";
    case Finding::Severity::kNote:
      return "note";
  }
  return "problem";
}

const char* name_of(PeerFacts::Path path) {
  switch (path) {
    case PeerFacts::Path::kOpen:
      return "open";
    case PeerFacts::Path::kUnresolved:
      return "unresolved";
    case PeerFacts::Path::kSilent:
      break;
    case PeerFacts::Path::kUnreachable:
      return "unreachable";
  }
  return "silent";
}

const char* name_of(PeerFacts::Login login) {
  switch (login) {
    case PeerFacts::Login::kWorks:
      return "works";
    case PeerFacts::Login::kFails:
      return "fails";
    case PeerFacts::Login::kNotTried:
      break;
  }
  return "not tried";
}

std::string gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1ULL << 30U));
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string gpu_text(const MachineFacts& facts) {
  const std::vector<Gpu>& gpus = facts.machine_gpus.gpus;
  if (gpus.empty()) return "none" + (facts.machine_gpus.detail.empty() ? "" : ": " + facts.machine_gpus.detail);
  std::string text = fmt::format("{}, {} visible to programs", gpus.size(), facts.visible_gpus.gpus.size());
  if (!gpus.front().name.empty()) text += ", " + gpus.front().name;
  if (!facts.driver.library.empty()) text += ", driver " + facts.driver.library;
  if (facts.driver.cuda > 0)
    text += fmt::format(", CUDA {}.{}", facts.driver.cuda / 1000, facts.driver.cuda % 1000 / 10);
  return text;
}

/// '2.6' of '2.6.0+cu124'.
std::string short_version(const std::string& version) {
  const std::size_t dot = version.find('.');
  return version.substr(0, dot == std::string::npos ? dot : version.find_first_not_of("0123456789", dot + 1));
}

std::string python_summary(const PythonFacts& python) {
  if (python.answer == PythonFacts::Answer::kNone) return ", no Python";
  if (python.answer != PythonFacts::Answer::kGiven) return {};
  std::string text = ", Python " + short_version(python.version);
  if (!python.torch) return text + " without torch";
  text += " with torch " + short_version(python.torch->version);
  if (!python.torch->cuda.empty()) text += " (CUDA " + short_version(python.torch->cuda) + ")";
  if (!python.torch->nccl.empty()) text += ", NCCL " + short_version(python.torch->nccl);
  return text;
}

/// The one line about a healthy machine.
std::string healthy_line(const MachineFacts& facts) {
  const std::size_t gpus = facts.machine_gpus.gpus.size();
  const std::size_t visible = facts.visible_gpus.gpus.size();
  std::string text = "lrun doctor: no problems: ";
  if (gpus == 0) {
    text += "no GPU, " + counted(facts.cpus, "CPU core");
  } else {
    text += (visible < gpus ? fmt::format("{} of ", visible) : "") + counted(gpus, "GPU");
  }
  text += python_summary(facts.python);
  if (!facts.peers.empty()) text += ", " + counted(facts.peers.size(), "host") + " reached";
  return text;
}

std::string python_text(const PythonFacts& python) {
  if (python.answer == PythonFacts::Answer::kNone) return "none: no program '" + python.choice.program + "'";
  if (python.answer == PythonFacts::Answer::kFailed) return python.error;
  return fmt::format("{}, {} ({})", python.version, python.path, python.choice.reason);
}

std::string torch_text(const TorchFacts& torch) {
  const std::string nccl = torch.nccl.empty() ? "" : ", NCCL " + torch.nccl;
  return torch.version + (torch.cuda.empty() ? ", built without CUDA" : ", built for CUDA " + torch.cuda) + nccl;
}

/// The facts, a line each.
std::string fact_lines(const MachineFacts& facts) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<8} {}: {}\n", "info", name, terminal_safe(value));
  };
  add("GPUs", gpu_text(facts));
  add("Python", python_text(facts.python));
  if (facts.python.torch) {
    add("torch", torch_text(*facts.python.torch));
  } else if (facts.python.answer == PythonFacts::Answer::kGiven) {
    add("torch", "none");
  }
  add("/dev/shm",
      gibibytes(facts.shared_memory.total_bytes) + ", " + gibibytes(facts.shared_memory.free_bytes) + " free");
  add("locked memory", facts.locked_memory ? fmt::format("{} KiB", *facts.locked_memory / 1024) : "unlimited");
  add("open files", std::to_string(facts.open_files));
  add("CPUs", std::to_string(facts.cpus) + (facts.cpu_quota ? fmt::format(", quota {:.1f}", *facts.cpu_quota) : ""));
  add("host", facts.host_name + (facts.host_addresses.empty() ? "" : ", " + joined(facts.host_addresses)));
  for (const PeerFacts& peer : facts.peers) {
    const std::string login = peer.login == PeerFacts::Login::kNotTried ? "" : name_of(peer.login);
    add("host " + peer.host, std::string(name_of(peer.path)) + (login.empty() ? "" : ", ssh " + login));
  }
  add("clock", facts.clock_synchronized ? "synchronized" : "not synchronized");
  add("run folders", facts.state_folder + ", " + gibibytes(facts.state_room.free_bytes) + " free");
  return text;
}

OrderedJson json_of_findings(const std::vector<Finding>& findings) {
  OrderedJson list = OrderedJson::array();
  for (const Finding& finding : findings) {
    list.push_back(
        {{"id", finding.id}, {"severity", name_of(finding.severity)}, {"text", finding.text}, {"fix", finding.fix}});
  }
  return list;
}

OrderedJson gpus_json(const MachineFacts& facts) {
  OrderedJson list = OrderedJson::array();
  for (const Gpu& gpu : facts.machine_gpus.gpus) {
    list.push_back({{"index", gpu.index}, {"uuid", gpu.uuid}, {"name", gpu.name}, {"pci_address", gpu.pci_address}});
  }
  return list;
}

OrderedJson peers_json(const MachineFacts& facts) {
  OrderedJson list = OrderedJson::array();
  for (const PeerFacts& peer : facts.peers) {
    list.push_back(
        {{"host", peer.host}, {"path", name_of(peer.path)}, {"address", peer.address}, {"ssh", name_of(peer.login)}});
  }
  return list;
}

OrderedJson python_json(const PythonFacts& python) {
  return {{"program", python.choice.program},
          {"origin", python.choice.reason},
          {"path", python.path},
          {"version", python.version},
          {"error", python.error}};
}

OrderedJson torch_json(const std::optional<TorchFacts>& torch) {
  if (!torch) return nullptr;
  return {{"version", torch->version}, {"cuda", torch->cuda}, {"nccl", torch->nccl}};
}

}  // namespace

std::string doctor_text(const MachineFacts& facts, const std::vector<Finding>& findings, bool verbose) {
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.severity == Finding::Severity::kNote && !verbose) continue;
    text += fmt::format("{:<8} {}\n{:>8} {}\n", name_of(finding.severity), terminal_safe(finding.text),
                        "fix:", terminal_safe(finding.fix));
  }
  if (verbose) text += fact_lines(facts);
  if (is_healthy(findings)) text += terminal_safe(healthy_line(facts)) + "\n";
  return text;
}

std::string doctor_json(const MachineFacts& facts, const std::vector<Finding>& findings) {
  const OrderedJson json = {
      {"schema", 1},
      {"healthy", is_healthy(findings)},
      {"findings", json_of_findings(findings)},
      {"facts",
       {{"host", facts.host_name},
        {"addresses", facts.host_addresses},
        {"cpus", facts.cpus},
        {"cpu_quota", facts.cpu_quota ? OrderedJson(*facts.cpu_quota) : OrderedJson()},
        {"shared_memory_bytes", facts.shared_memory.total_bytes},
        {"shared_memory_free_bytes", facts.shared_memory.free_bytes},
        {"locked_memory_bytes", facts.locked_memory ? OrderedJson(*facts.locked_memory) : OrderedJson()},
        {"open_files", facts.open_files},
        {"gpus", gpus_json(facts)},
        {"visible_gpus", facts.visible_gpus.gpus.size()},
        {"driver", facts.driver.library},
        {"cuda", facts.driver.cuda},
        {"python", python_json(facts.python)},
        {"torch", torch_json(facts.python.torch)},
        {"clock_synchronized", facts.clock_synchronized},
        {"state_folder", facts.state_folder},
        {"hosts", peers_json(facts)}}},
  };
  // Names of hosts and devices are bytes: those that are not UTF-8 become U+FFFD.
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace lrun::launcher
