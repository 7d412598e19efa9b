#include "inspect/judge_python.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/shell_words.h"
#include "base/split.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

using Severity = Finding::Severity;

constexpr const char* kWheels = "https://pytorch.org/get-started/locally";

/// '12.4' as 12040, which is how the driver counts. Empty for anything else.
std::optional<int> cuda_number(std::string_view version) {
  constexpr int kMost = 1000;
  const std::optional<int> major = natural_number(cut(version, '.'));
  const std::optional<int> minor = natural_number(cut(version, '.'));
  if (!major || !minor || *major >= kMost || *minor >= kMost / 10) return std::nullopt;
  return *major * 1000 + *minor * 10;
}

std::string cuda_text(int number) { return fmt::format("CUDA {}.{}", number / 1000, number % 1000 / 10); }

/// A driver runs every CUDA of its own major version: only what is compiled at run time may be too new for it.
void judge_torch_cuda(const PythonFacts& python, int driver, std::vector<Finding>& findings) {
  const TorchFacts& torch = *python.torch;
  const std::string name = fmt::format("torch {} of '{}'", torch.version, python.choice.program);
  const std::string other =
      fmt::format("install a torch for {}: {}", driver > 0 ? cuda_text(driver) + " or older" : "CUDA", kWheels);
  if (torch.cuda.empty()) {
    findings.push_back(
        {"torch-cuda", Severity::kProblem, name + " was built without CUDA: it cannot use the GPUs", other});
    return;
  }
  const std::optional<int> built_for = cuda_number(torch.cuda);
  if (!built_for || driver <= 0 || *built_for <= driver) return;
  if (*built_for / 1000 > driver / 1000) {
    findings.push_back({"torch-cuda", Severity::kProblem,
                        fmt::format("{} needs CUDA {}, but the driver runs {} at most: it finds no GPU", name,
                                    torch.cuda, cuda_text(driver)),
                        "update the NVIDIA driver, or " + other});
  } else {
    findings.push_back({"torch-cuda", Severity::kNote,
                        fmt::format("{} was built for CUDA {}, the driver runs {}: code that is compiled at run time "
                                    "may fail with 'unsupported toolchain'",
                                    name, torch.cuda, cuda_text(driver)),
                        "update the NVIDIA driver, or " + other});
  }
}

}  // namespace

void judge_python(const MachineFacts& facts, std::vector<Finding>& findings) {
  const PythonFacts& python = facts.python;
  const std::string& origin = python.choice.reason;
  if (python.answer == PythonFacts::Answer::kNone && python.choice.is_named) {
    findings.push_back({"python", Severity::kProblem,
                        fmt::format("{} is '{}', but there is no such program", origin, python.choice.program),
                        "set it to the path of a Python, or unset it"});
  } else if (python.answer == PythonFacts::Answer::kFailed) {
    findings.push_back({"python", Severity::kWarning,
                        fmt::format("'{}' ({}), which runs Python programs, does not work: {}", python.choice.program,
                                    origin, python.error),
                        "name another one with 'lrun --python PATH', or LRUN_PYTHON=PATH"});
  }
  if (!python.choice.warning.empty()) {
    findings.push_back({"python", Severity::kNote, python.choice.warning, "export LRUN_PYTHON=PATH"});
  }
  const GpuInventory& gpus = facts.machine_gpus;
  if (!python.torch || gpus.gpus.empty() || gpus.vendor != GpuVendor::kNvidia) return;
  judge_torch_cuda(python, facts.driver.cuda, findings);
  if (!python.torch->missing_nccl.empty()) {
    const std::string& package = python.torch->missing_nccl;
    findings.push_back({"nccl", Severity::kProblem,
                        fmt::format("torch {} of '{}' lacks NCCL: its package '{}' is not installed",
                                    python.torch->version, python.choice.program, package),
                        shell_line({python.choice.program, "-m", "pip", "install", package})});
  }
}

}  // namespace lrun::launcher
