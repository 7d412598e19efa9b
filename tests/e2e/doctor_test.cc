#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "support/lrun_process.h"
#include "support/mentions.h"
#include "support/temporary_folder.h"

namespace lrun::test {
namespace {

/// A machine with these GPUs, as the fake driver of the unit tests plays it.
LrunProcess::Options machine(std::map<std::string, std::string> environment) {
  environment["LD_LIBRARY_PATH"] = FAKE_NVML_FOLDER;
  return {.environment = std::move(environment)};
}

TEST(Doctor, NamesWhatIsWrongWithItsFix) {
  LrunProcess lrun({"doctor", "--hosts", "127.0.0.1"}, machine({{"FAKE_NVML_GPUS", "2"}, {"FAKE_NVML_PROCESS", "1"}}));
  EXPECT_EQ(lrun.wait().code, 1);
  EXPECT_NE(lrun.out().find("warning  GPU 0 is busy: process 1 "), std::string::npos) << lrun.out();
  EXPECT_NE(lrun.out().find("\n    fix: "), std::string::npos) << lrun.out();
  EXPECT_EQ(lrun.out().find("'127.0.0.1'"), std::string::npos) << "that one is reached: " << lrun.out();
}

TEST(Doctor, OutlivesADriverThatCrashesAndSpeaksJson) {
  LrunProcess lrun({"doctor", "--json"}, machine({{"FAKE_NVML_TROUBLE", "crash"}}));
  EXPECT_EQ(lrun.wait().code, 1);
  const nlohmann::json json = nlohmann::json::parse(lrun.out());
  EXPECT_EQ(json.at("healthy"), false);
  EXPECT_EQ(json.at("findings").at(0).at("id"), "driver") << json;
}

TEST(Doctor, SaysWhatItSawWhenAsked) {
  LrunProcess lrun({"doctor", "--verbose"}, machine({{"FAKE_NVML_GPUS", "2"}}));
  lrun.wait();
  EXPECT_NE(lrun.out().find("info     GPUs: 2, 2 visible to programs"), std::string::npos) << lrun.out();
}

/// Packages of a Python: torch, which must not be imported, and what pip keeps beside it.
class PythonPackages {
 public:
  /// \param cuda  in Python's words.
  PythonPackages(const std::string& torch, const std::string& cuda) {
    std::filesystem::create_directories(folder_ / "torch");
    std::filesystem::create_directories(folder_ / "torch-2.6.0.dist-info");
    (void)folder_.script("torch/__init__.py", "raise SystemExit('torch was imported')\n", false);
    (void)folder_.script(
        "torch/version.py",
        "from typing import Optional\n__version__ = '" + torch + "'\ncuda: Optional[str] = " + cuda + "\n", false);
    (void)folder_.script("torch-2.6.0.dist-info/METADATA",
                         "Metadata-Version: 2.1\nName: torch\nVersion: " + torch +
                             "\nRequires-Dist: filelock\nRequires-Dist: nvidia-nccl-cu12==2.21.5; "
                             "platform_system == \"Linux\"\n",
                         false);
  }

  void add_nccl() {
    std::filesystem::create_directories(folder_ / "nvidia_nccl_cu12-2.21.5.dist-info");
    (void)folder_.script("nvidia_nccl_cu12-2.21.5.dist-info/METADATA",
                         "Metadata-Version: 2.1\nName: nvidia-nccl-cu12\nVersion: 2.21.5\n", false);
  }

  /// What `lrun doctor` finds, with two GPUs, and without an NCCL of this machine.
  [[nodiscard]] nlohmann::json examined() const {
    (void)folder_.script("libnccl.so.2", "no library\n", false);
    LrunProcess::Options options = machine({{"FAKE_NVML_GPUS", "2"}, {"PYTHON_EXEC", "python3"}});
    options.environment["PYTHONPATH"] = folder_.path().string();
    options.environment["LD_LIBRARY_PATH"] += ":" + folder_.path().string();
    LrunProcess lrun({"doctor", "--json"}, options);
    lrun.wait();
    return nlohmann::json::parse(lrun.out());
  }

 private:
  TemporaryFolder folder_;
};

/// The finding with this id; null where there is none.
nlohmann::json finding(const nlohmann::json& examined, const std::string& id) {
  for (const nlohmann::json& each : examined.at("findings")) {
    if (each.at("id") == id) return each;
  }
  return nullptr;
}

TEST(Doctor, KnowsTorchAndItsNcclWithoutImportingIt) {
  PythonPackages packages("2.6.0+cu124", "'12.4'");
  packages.add_nccl();
  const nlohmann::json examined = packages.examined();
  EXPECT_EQ(examined.at("facts").at("torch"),
            nlohmann::json({{"version", "2.6.0+cu124"}, {"cuda", "12.4"}, {"nccl", "2.21.5"}}))
      << examined.dump(1);
  EXPECT_EQ(finding(examined, "torch-cuda"), nullptr) << "the fake driver runs CUDA 12.8";
  EXPECT_EQ(finding(examined, "nccl"), nullptr);
}

TEST(Doctor, ComplainsOfATorchThatCannotUseTheGpus) {
  EXPECT_THAT(finding(PythonPackages("2.6.0+cpu", "None").examined(), "torch-cuda").dump(),
              mentions({"problem", "2.6.0+cpu", "built without CUDA", "CUDA 12.8 or older"}));
  const nlohmann::json newer = PythonPackages("2.11.0+cu130", "'13.0'").examined();
  EXPECT_THAT(finding(newer, "torch-cuda").dump(), mentions({"problem", "needs CUDA 13.0", "driver runs CUDA 12.8"}));
  EXPECT_THAT(finding(newer, "nccl").dump(), mentions({"problem", "-m pip install nvidia-nccl-cu12==2.21.5"}));
}

TEST(Doctor, NamesAPythonThatDoesNotWork) {
  const TemporaryFolder folder;
  LrunProcess broken(
      {"doctor"},
      {.environment = {{"PYTHON_EXEC", folder.script("python", "#!/bin/sh\necho no encodings >&2\nexit 1\n")}}});
  EXPECT_EQ(broken.wait().code, 1);
  EXPECT_THAT(broken.out(), mentions({"warning  '", "/python'", "does not work: no encodings\n"}));
  LrunProcess missing({"doctor"}, {.environment = {{"PYTHON_EXEC", "/nowhere/python"}}});
  EXPECT_EQ(missing.wait().code, 1);
  EXPECT_THAT(missing.out(), mentions({"problem  PYTHON_EXEC is '/nowhere/python'"}));
}

TEST(Doctor, LogsInWithSshWhereARunWould) {
  const TemporaryFolder folder;
  (void)folder.script("ssh", R"(#!/bin/sh
case "$*" in
  *" BatchMode=yes "*" -l eve 127.0.0.2 true") echo "eve@127.0.0.2: Permission denied (publickey)." >&2; exit 255 ;;
  *" BatchMode=yes "*" -l bob 127.0.0.1 true") exit 0 ;;
  *) echo "asked for $*" >&2; exit 255 ;;
esac
)");
  const std::string path = folder.path().string() + ":" + std::getenv("PATH");
  LrunProcess lrun({"doctor", "--verbose", "--hosts", "bob@127.0.0.1,eve@127.0.0.2,127.0.0.3"},
                   {.environment = {{"PATH", path}}});
  EXPECT_EQ(lrun.wait().code, 1);
  EXPECT_THAT(
      lrun.out(),
      mentions({"problem  ssh cannot log in to 'eve@127.0.0.2': eve@127.0.0.2: Permission denied (publickey).\n",
                "'ssh-copy-id eve@127.0.0.2'", "info     host bob@127.0.0.1: open, ssh works\n",
                "info     host 127.0.0.3: open\n"}))
      << "127.0.0.3 is this machine, which needs no ssh";
}

TEST(Doctor, NamesAnSshThatIsNotThereOnce) {
  LrunProcess lrun({"doctor", "--hosts", "bob@127.0.0.1,eve@127.0.0.2"},
                   {.environment = {{"LRUN_SSH", "/nowhere/ssh"}}});
  EXPECT_EQ(lrun.wait().code, 1);
  const std::string line = "problem  cannot execute '/nowhere/ssh': ";
  EXPECT_NE(lrun.out().find(line), std::string::npos) << lrun.out();
  EXPECT_EQ(lrun.out().find(line), lrun.out().rfind(line)) << lrun.out();
}

}  // namespace
}  // namespace lrun::test
