#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/lrun_process.h"

namespace lrun::test {

/// `lrun words...` beside a run, among whose runs it looks.
class Beside : public LrunProcess {
 public:
  Beside(const LrunProcess& run, std::vector<std::string> words, const std::string& path = std::getenv("PATH"))
      : LrunProcess(std::move(words), {.environment = {{"LRUN_STATE", run.state().string()}, {"PATH", path}}}) {}
};

/// The run has a socket by which it can be asked.
inline bool has_socket(const LrunProcess& run) {
  return eventually([&] { return std::filesystem::exists(run.run_folder() / "control.sock"); });
}

}  // namespace lrun::test
