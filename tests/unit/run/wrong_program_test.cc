#include "run/wrong_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/user_error.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WrongProgram : public ::testing::Test {
 protected:
  [[nodiscard]] std::string advice(const std::string& program) const {
    return advice_about(program, folder_.path() / program);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string refusal_of_module(const std::string& module) const {
    LaunchRequest request;
    request.command = {module};
    request.module = true;
    return refusal(request);
  }
  [[nodiscard]] std::string refusal_of(const std::vector<std::string>& command, int world_size = 1) const {
    LaunchRequest request;
    request.command = command;
    return refusal(request, world_size);
  }
  [[nodiscard]] std::string refusal(const LaunchRequest& request, int world_size = 1) const {
    LaunchPlan plan;
    plan.world_size = world_size;
    plan.setup.folder.value = folder_.path();
    try {
      check_command(request, plan);
    } catch (const UserError& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    return "";
  }

  [[nodiscard]] std::filesystem::path folder() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(WrongProgram, IsAWholeCommandLine) {
  EXPECT_THAT(advice("./train --lr 1"), HasSubstr("leave out the quotes, as in 'lrun [options] ./train --lr 1'"));
  EXPECT_EQ(advice("./train && ls"), "it is a line for a shell: write 'sh -c' before it");
  write("my train", "");
  EXPECT_EQ(advice("my train"), "") << "a file may be called so";
}

TEST_F(WrongProgram, IsAWordThatIsAVerbOrAWordOfAShellElsewhere) {
  EXPECT_THAT(advice("stop"), HasSubstr("'kill PID'"));
  EXPECT_THAT(advice("rerun"), HasSubstr("'lrun again'"));
  EXPECT_THAT(advice("why"), HasSubstr("'lrun explain'"));
  EXPECT_THAT(advice("\u2013-devices"), HasSubstr("write '--devices'"));
  EXPECT_THAT(advice("retry"), HasSubstr("'lrun again'"));
  EXPECT_THAT(advice("check"), HasSubstr("'lrun doctor'"));
  EXPECT_THAT(advice("debug"), HasSubstr("'--debug-rank 0'"));
  EXPECT_THAT(advice("source"), HasSubstr("a word of the shell"));
  EXPECT_THAT(advice("cd"), HasSubstr("'--chdir DIR'"));
  EXPECT_THAT(advice("mpirun"), HasSubstr("lrun takes its place"));
  EXPECT_THAT(advice("resume"), HasSubstr("'lrun again'"));
  EXPECT_THAT(advice("--devices"), HasSubstr("PROGRAM stands behind '--'"));
  EXPECT_THAT(advice("—devices"), HasSubstr("write '--devices'"));
  EXPECT_THAT(advice("–n"), HasSubstr("write '-n'"));
  write("stop", "");
  EXPECT_EQ(advice("stop"), "") << "a file may be called so";
}

TEST_F(WrongProgram, IsAProgramOfTheSystemThatWasMeantAsAVerb) {
  EXPECT_THAT(refusal_of({"ps"}), HasSubstr("'lrun status'"));
  EXPECT_THAT(refusal_of({"kill", "r1"}), HasSubstr("'kill PID'"));
  EXPECT_THAT(refusal_of({"tail", "-f"}), HasSubstr("'lrun logs --follow'"));
  EXPECT_THAT(refusal_of({"watch"}), HasSubstr("'lrun status --watch'"));
  EXPECT_THAT(refusal_of({"test"}), HasSubstr("'./test'"));
  EXPECT_THAT(refusal_of({"sbatch", "job.sh"}), HasSubstr("into the batch script"));
  EXPECT_EQ(refusal_of({"tail", "-f", "log"}), "");
  EXPECT_EQ(refusal_of({"ps", "-ef"}), "");
  EXPECT_EQ(refusal_of({"./ps"}), "");
  EXPECT_EQ(refusal_of({"ls"}, 2), "") << "two workers were asked for, so a program is meant";
}

TEST_F(WrongProgram, IsPythonOrAShellWithoutAScript) {
  EXPECT_THAT(refusal_of({"python"}, 2), AllOf(HasSubstr("'python' has no script"), HasSubstr("'lrun python SCRIPT'")));
  EXPECT_THAT(refusal_of({"bash"}), HasSubstr("no input"));
  EXPECT_EQ(refusal_of({"python", "--version"}), "");
  LaunchRequest request;
  request.command = {"python"};
  request.standard_input = true;
  EXPECT_EQ(refusal(request), "");
}

TEST_F(WrongProgram, IsWhatOnlyAShellOrAnotherToolUnderstands) {
  EXPECT_THAT(advice("~/train.py"), HasSubstr("leave out the quotes"));
  EXPECT_THAT(advice("https://host/train.py"), HasSubstr("download it before"));
  EXPECT_THAT(advice("/data:/data"), HasSubstr("lrun mounts nothing"));
  EXPECT_THAT(advice("-"), HasSubstr("'lrun train.py'"));
  EXPECT_THAT(advice("fit"), HasSubstr("PROGRAM fit"));
  EXPECT_THAT(advice("\u201ctrain.py\u201d"), HasSubstr("curly quotes"));
  EXPECT_THAT(advice("singularity"), HasSubstr("'module load'"));
  EXPECT_THAT(advice("horovodrun"), HasSubstr("'lrun --strategy horovod'"));
}

TEST_F(WrongProgram, IsAFolderOrAHost) {
  std::filesystem::create_directory(folder() / "data");
  EXPECT_EQ(advice("data"), "'data' is a folder: name the program in it");
  EXPECT_EQ(advice("beta:2"), "a list is one word, with commas and no blanks: '-H HOST,beta:2'");
  EXPECT_EQ(advice("127.0.0.1"), "a list is one word, with commas and no blanks: '-H HOST,127.0.0.1'");
  EXPECT_EQ(advice("1.2.3"), "") << "a version is no address";
  for (const char* const other : {"beta:", ":2", "a/b:2", "b:c"}) EXPECT_EQ(advice(other), "") << other;
}

TEST_F(WrongProgram, IsANotebookOrASourceFile) {
  EXPECT_EQ(advice("a.ipynb"), "") << "there is no such file";
  write("job.sbatch", "");
  EXPECT_EQ(advice("job.sbatch"), "it is a batch script of Slurm: 'sbatch job.sbatch' submits it");
  write("a.ipynb", "{}");
  EXPECT_THAT(advice("a.ipynb"), AllOf(HasSubstr("notebook"), HasSubstr("'a.py'")));
  write("train.cpp", "");
  EXPECT_THAT(advice("train.cpp"), AllOf(HasSubstr("source file of C++"), HasSubstr("'c++ -o train train.cpp'")));
  write("train.c", "");
  EXPECT_THAT(advice("train.c"), HasSubstr("'cc -o train train.c'"));
  write("train.py", "");
  EXPECT_EQ(advice("train.py"), "");
}

TEST_F(WrongProgram, IsNoProgram) {
  for (const char* const name : {"conf.yaml", "model.pt", "README.md"}) {
    write(name, "");
    EXPECT_EQ(advice(name), "it is no program: name the one that reads it") << name;
  }
  write("train.exe", "");
  EXPECT_EQ(advice("train.exe"), "it is a program of Windows: build it for Linux");
  write("activate", "");
  EXPECT_THAT(advice("activate"), HasSubstr("'source activate' stands in the shell before lrun"));
  write("Makefile", "");
  EXPECT_THAT(advice("Makefile"), HasSubstr("'make'"));
}

TEST_F(WrongProgram, IsForOtherProcessors) {
  std::ifstream own("/proc/self/exe", std::ios::binary);
  std::string header(64, '\0');
  own.read(header.data(), static_cast<std::streamsize>(header.size()));
  write("own", header);
  EXPECT_EQ(advice("own"), "");
  constexpr std::size_t kMachine = 18;
  header[kMachine] = 22;  // IBM S/390, in either order of bytes no processor of ours
  header[kMachine + 1] = 22;
  write("other", header);
  EXPECT_THAT(advice("other"), AllOf(HasSubstr("it was built for "), HasSubstr(", and this machine is ")));
  write("short", header.substr(0, 10));
  EXPECT_EQ(advice("short"), "");
}

TEST_F(WrongProgram, IsALauncher) {
  EXPECT_THAT(advice("torch.distributed.run"), HasSubstr("lrun takes its place"));
  EXPECT_THAT(warn_of_launcher({"python", "-m", "torch.distributed.run", "a.py"}, 1),
              HasSubstr("'torch.distributed.run'"));
  EXPECT_THAT(warn_of_launcher({"python3", "-um", "accelerate.commands.launch", "a.py"}, 2),
              HasSubstr("'accelerate.commands.launch'"));
  EXPECT_THAT(warn_of_launcher({"/usr/bin/torchrun", "a.py"}, 1), HasSubstr("'/usr/bin/torchrun'"));
  EXPECT_EQ(warn_of_launcher({"a.py", "--with", "torchrun"}, 1), "") << "an argument of the program";
  EXPECT_EQ(warn_of_launcher({}, 1), "");
  EXPECT_THAT(warn_of_launcher({"mpirun", "-np", "2"}, 2), HasSubstr("'mpirun'"));
  EXPECT_EQ(warn_of_launcher({"mpirun", "-np", "2"}, 1), "") << "one worker may be the job of another launcher";
}

TEST_F(WrongProgram, IsAMisspeltScriptOrModule) {
  std::filesystem::create_directory(folder() / "package");
  for (const char* const file : {"train.py", "package/train.py", "package/__main__.py"}) std::ofstream(folder() / file);
  FailureRecord record;
  record.error = "can't open file '" + (folder() / "trian.py").string() + "': [Errno 2] No such file or directory";
  EXPECT_EQ(hint_about_misspelt_name(record, ""), "did you mean 'train.py'?");
  record.error = "No module named package.trian";
  EXPECT_EQ(hint_about_misspelt_name(record, folder()), "did you mean '-m package.train'?");
  record.error = "No module named package.other_words";
  EXPECT_EQ(hint_about_misspelt_name(record, folder()), "");
  record.error = "ModuleNotFoundError: No module named 'trian'";
  EXPECT_EQ(hint_about_misspelt_name(record, folder()), "") << "an import of the program";
  EXPECT_EQ(advice_about("package/", folder() / "package"), "did you mean '-m package'?");
  EXPECT_EQ(advice_about("./package", folder() / "package"), "did you mean '-m package'?");
}

TEST_F(WrongProgram, LooksForFilesAndModulesWhereTheyAreNot) {
  std::filesystem::create_directories(folder() / "proj/data");
  std::filesystem::create_directories(folder() / "wandb");
  for (const char* const file : {"proj/data/train.csv", "proj/data/__init__.py", "proj/fit.py", "other.csv"}) {
    std::ofstream(folder() / file);
  }
  FailureRecord record;
  const auto hint = [&](const std::string& script) { return hint_about_folder(record, folder(), {"python3", script}); };
  record.error = "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'";
  EXPECT_EQ(hint("proj/fit.py"), "it is in 'proj': start lrun there, as relative paths begin where lrun was started");
  EXPECT_EQ(hint("fit.py"), "") << "they begin there";
  record.error = "FileNotFoundError: [Errno 2] No such file or directory: 'other.csv'";
  EXPECT_EQ(hint("proj/fit.py"), "");
  record.error = "ModuleNotFoundError: No module named 'proj.data'";
  EXPECT_EQ(hint("proj/fit.py"),
            "Python looks for it in 'proj', beside the script: write '--env PYTHONPATH=.:$PYTHONPATH'");
  record.error = "ModuleNotFoundError: No module named 'wandb'";
  EXPECT_EQ(hint("proj/fit.py"), "") << "a folder of data";
  record.error = "ImportError: attempted relative import with no known parent package";
  EXPECT_EQ(hint("proj/fit.py"), "it is part of a package: write '-m proj.fit' in the place of 'proj/fit.py'");
  EXPECT_EQ(hint_about_folder(record, folder(), {"./train", "--config", "proj/fit.py"}), "") << "an argument";
  record.error = "ModuleNotFoundError: No module named 'torch'";
  EXPECT_EQ(hint("proj/fit.py"), "");
}

TEST_F(WrongProgram, IsABlankOrHasOne) {
  EXPECT_THAT(advice(" "), HasSubstr("remove the one behind '\\'"));
  EXPECT_THAT(advice("\u00a0train.py"), HasSubstr("no-break space"));
}

TEST_F(WrongProgram, IsALauncherOrAToolThatFailed) {
  EXPECT_THAT(hint_about_failed_launcher({"mpirun", "-np", "2", "a.py"}), HasSubstr("leave 'mpirun' out"));
  EXPECT_THAT(hint_about_failed_launcher({"python", "-m", "torch.distributed.run", "a.py"}),
              HasSubstr("leave 'python -m torch.distributed.run' out"));
  EXPECT_EQ(hint_about_failed_launcher({"./train"}), "");
  EXPECT_EQ(hint_about_failed_launcher({"python", "train.py"}), "");
  FailureRecord record;
  record.ending = FailureRecord::Ending::kExited;
  record.value = 127;
  EXPECT_THAT(hint_about_tool(record, {"nice", "-n", "5", "a.py"}), HasSubstr("'nice' does not start 'a.py'"));
  EXPECT_EQ(hint_about_tool(record, {"nice", "python3", "a.py"}), "");
  EXPECT_EQ(hint_about_tool(record, {"python3", "-u", "a.py"}), "");
  EXPECT_EQ(hint_about_tool(record, {"nice"}), "");
  EXPECT_EQ(hint_about_tool(record, {"./run.sh", "a.py"}), "");
  record.value = 1;
  EXPECT_EQ(hint_about_tool(record, {"nice", "a.py"}), "");
}

TEST_F(WrongProgram, IsADebuggerWithoutATerminal) {
  EXPECT_THAT(refusal_of({"python3", "-m", "pdb", "a.py"}, 2), HasSubstr("'--debug-rank 0'"));
  EXPECT_THAT(refusal_of_module("pdb"), HasSubstr("'pdb' needs a terminal"));
  EXPECT_EQ(refusal_of({"python3", "-m", "pdb", "-c", "continue", "a.py"}), "");
  EXPECT_EQ(refusal_of({"python3", "-m", "pip", "list"}), "");
}

TEST_F(WrongProgram, IsAFileWhereAModuleIsMeant) {
  EXPECT_THAT(refusal_of_module("./x.py"), HasSubstr("leave '-m' out: 'lrun [options] ./x.py'"));
  EXPECT_EQ(refusal_of_module("x.py"), "") << "a package may have a module of that name";
  write("x.py", "");
  EXPECT_THAT(refusal_of_module("x.py"), HasSubstr("'-m x.py': that is a file"));
  EXPECT_EQ(refusal_of_module("x"), "");
  std::filesystem::create_directory(folder() / "d");
  write("d/y.py", "");
  EXPECT_THAT(refusal_of_module("d/y"), HasSubstr("with dots: '-m d.y'"));
}

}  // namespace
}  // namespace lrun::launcher
