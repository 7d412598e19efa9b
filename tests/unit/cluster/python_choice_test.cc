#include "cluster/python_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace lrun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Paths = std::vector<std::string>;
using Variables = std::map<std::string, std::string, std::less<>>;

/// A host with these files, all of which may be executed, in /home/ann/project.
class MadeUpHost {
 public:
  MadeUpHost& with(const Paths& paths) {
    files_.insert(paths.begin(), paths.end());
    return *this;
  }
  MadeUpHost& with_venv(const std::string& prefix) {
    return with({prefix + "/pyvenv.cfg", prefix + "/bin/python", prefix + "/bin/python3"});
  }
  MadeUpHost& with_conda(const std::string& prefix) {
    return with({prefix + "/conda-meta/history", prefix + "/bin/python", prefix + "/bin/python3"});
  }
  MadeUpHost& with_link(const std::string& from, const std::string& to) {
    links_[from] = to;
    return *this;
  }

  [[nodiscard]] PythonChoice python_of(const std::string& typed, const std::string& file, const Variables& variables,
                                       const NamedPython& asked = {}) const {
    return choose_python(asked, Environment(variables), {typed, file, "/home/ann/project"}, look());
  }

 private:
  [[nodiscard]] bool exists(const std::string& path) const {
    const auto next = files_.lower_bound(path);
    return next != files_.end() && (*next == path || next->starts_with(path + "/"));
  }
  [[nodiscard]] Paths names(std::string folder) const {
    if (!folder.ends_with('/')) folder += '/';
    std::set<std::string> found;
    for (const std::string& file : files_) {
      if (file.starts_with(folder))
        found.insert(file.substr(folder.size(), file.find('/', folder.size()) - folder.size()));
    }
    return {found.begin(), found.end()};
  }
  [[nodiscard]] FileLook look() const {
    return {.exists = [this](const std::string& path) { return exists(path); },
            .runs = [this](const std::string& path) { return files_.contains(path); },
            .names = [this](const std::string& folder) { return names(folder); },
            .real = [this](const std::string& path) { return links_.contains(path) ? links_.at(path) : path; }};
  }

  std::set<std::string> files_{"/usr/bin/python3", "/usr/bin/python3.11"};
  std::map<std::string, std::string> links_;
};

struct Layout {
  const char* name;
  MadeUpHost host;
  std::string typed;
  std::string file;
  Variables variables;
  std::string program;
  std::string reason;
  std::string other = {};  ///< in the warning; empty: there is none
};

std::vector<Layout> layouts() {
  const std::string system = "/usr/bin:/bin";
  const std::string venv = "/home/ann/project/.venv";
  const std::string of_venv = venv + "/bin/lrun";
  const std::string uvx = "/home/me/.cache/uv/archive-v0/hash";
  const std::string uv_tool = "/home/me/.local/share/uv/tools/lrun";
  const std::string pipx = "/home/me/.local/share/pipx/venvs/lrun";
  const std::string local = "/home/me/.local/bin";
  const MadeUpHost plain = MadeUpHost().with_venv(venv).with({of_venv, local + "/lrun"});
  const MadeUpHost tools = MadeUpHost(plain)
                               .with_venv(uvx)
                               .with({uvx + "/bin/lrun"})
                               .with_venv(uv_tool)
                               .with({uv_tool + "/bin/lrun", uv_tool + "/uv-receipt.toml"})
                               .with_venv(pipx)
                               .with({pipx + "/bin/lrun", pipx + "/pipx_metadata.json"});
  const std::string overlay = "/home/me/.cache/uv/builds-v0/.tmp1";
  const MadeUpHost conda = MadeUpHost(plain)
                               .with_conda("/opt/conda")
                               .with({"/opt/conda/condabin/conda", "/opt/conda/bin/lrun"})
                               .with_conda("/opt/conda/envs/a")
                               .with({"/opt/conda/envs/a/bin/lrun"});
  const MadeUpHost two = MadeUpHost(plain).with_venv("/other").with_venv("/third");
  const std::string conda_a = "/opt/conda/envs/a/bin:" + system;
  return {
      {"an active venv",
       plain,
       "lrun",
       of_venv,
       {{"VIRTUAL_ENV", venv}, {"PATH", venv + "/bin:" + system}},
       venv + "/bin/python",
       "beside lrun"},
      {"a venv that is not active",
       plain,
       ".venv/bin/lrun",
       of_venv,
       {{"PATH", system}},
       venv + "/bin/python",
       "beside lrun"},
      {"the same with dots",
       plain,
       "./data/../.venv/bin/lrun",
       "",
       {{"PATH", system}},
       venv + "/bin/python",
       "beside lrun"},
      {"a venv in PATH without variables",
       plain,
       "lrun",
       of_venv,
       {{"PATH", venv + "/bin:" + system}},
       venv + "/bin/python",
       "beside lrun"},
      {"uv run",
       plain,
       "lrun",
       of_venv,
       {{"VIRTUAL_ENV", venv}, {"PATH", venv + "/bin:" + system}},
       venv + "/bin/python",
       "beside lrun"},
      {"uv run --with lrun",
       MadeUpHost(tools).with_venv(overlay),
       "lrun",
       uvx + "/bin/lrun",
       {{"VIRTUAL_ENV", overlay}, {"PATH", overlay + "/bin:" + uvx + "/bin:" + venv + "/bin:" + system}},
       overlay + "/bin/python",
       "VIRTUAL_ENV"},
      {"uvx", tools, "lrun", uvx + "/bin/lrun", {{"PATH", uvx + "/bin:" + system}}, "/usr/bin/python3", "PATH"},
      {"uvx in an active venv",
       tools,
       "lrun",
       uvx + "/bin/lrun",
       {{"VIRTUAL_ENV", venv}, {"PATH", uvx + "/bin:" + venv + "/bin:" + system}},
       venv + "/bin/python",
       "VIRTUAL_ENV"},
      {"uvx with what pip brings",
       MadeUpHost(tools).with({uvx + "/lib/python3.11/site-packages/lrun-0.2.0.dist-info/RECORD",
                               uvx + "/lib/python3.11/site-packages/pip-24.0.dist-info/RECORD"}),
       "lrun",
       uvx + "/bin/lrun",
       {{"PATH", uvx + "/bin:" + system}},
       "/usr/bin/python3",
       "PATH"},
      {"uvx --with numpy",
       MadeUpHost(tools).with({uvx + "/lib/python3.11/site-packages/numpy-2.1.0.dist-info/RECORD"}),
       "lrun",
       uvx + "/bin/lrun",
       {{"PATH", uvx + "/bin:" + system}},
       uvx + "/bin/python",
       "beside lrun"},
      {"uv tool install", tools, "lrun", uv_tool + "/bin/lrun", {{"PATH", local + ":" + system}}, "python3", "PATH"},
      {"uv tool install with an active venv",
       tools,
       "lrun",
       uv_tool + "/bin/lrun",
       {{"VIRTUAL_ENV", venv}, {"PATH", venv + "/share:" + venv + "/bin:" + local + ":" + system}},
       venv + "/bin/python",
       "VIRTUAL_ENV"},
      {"pipx install", tools, local + "/lrun", pipx + "/bin/lrun", {{"PATH", local + ":" + system}}, "python3", "PATH"},
      {"pipx run",
       MadeUpHost(tools).with_venv("/home/me/.cache/pipx/hash").with({"/home/me/.cache/pipx/hash/pipx_metadata.json"}),
       "/home/me/.cache/pipx/hash/bin/lrun",
       "/home/me/.cache/pipx/hash/bin/lrun",
       {{"PATH", system}},
       "python3",
       "PATH"},
      {"an active environment of conda",
       conda,
       "lrun",
       "/opt/conda/envs/a/bin/lrun",
       {{"CONDA_PREFIX", "/opt/conda/envs/a"}, {"PATH", conda_a}},
       "/opt/conda/envs/a/bin/python",
       "beside lrun"},
      {"an image with conda in PATH",
       conda,
       "lrun",
       "/opt/conda/bin/lrun",
       {{"PATH", "/opt/conda/bin:" + system}},
       "/opt/conda/bin/python",
       "beside lrun"},
      {"lrun of conda's base in another environment",
       conda,
       "lrun",
       "/opt/conda/bin/lrun",
       {{"CONDA_PREFIX", "/opt/conda/envs/a"}, {"PATH", "/opt/conda/condabin:/opt/conda/bin:" + system}},
       "/opt/conda/bin/python",
       "beside lrun",
       "'/opt/conda/envs/a/bin/python' (CONDA_PREFIX)"},
      {"a venv typed while conda's base is active",
       conda,
       ".venv/bin/lrun",
       of_venv,
       {{"CONDA_PREFIX", "/opt/conda"}, {"PATH", "/opt/conda/bin:" + system}},
       venv + "/bin/python",
       "beside lrun"},
      {"a venv on top of conda",
       conda,
       "lrun",
       "/usr/bin/lrun",
       {{"CONDA_PREFIX", "/opt/conda"}, {"VIRTUAL_ENV", venv}, {"PATH", venv + "/bin:/opt/conda/bin:" + system}},
       venv + "/bin/python",
       "VIRTUAL_ENV"},
      {"conda on top of a venv",
       conda,
       "lrun",
       "/usr/bin/lrun",
       {{"CONDA_PREFIX", "/opt/conda/envs/a"},
        {"VIRTUAL_ENV", venv},
        {"PATH", "/opt/conda/envs/a/bin:" + venv + "/bin"}},
       "/opt/conda/envs/a/bin/python",
       "CONDA_PREFIX"},
      {"user site", plain, local + "/lrun", local + "/lrun", {{"PATH", local + ":" + system}}, "python3", "PATH"},
      {"user site with an active venv",
       plain,
       "lrun",
       local + "/lrun",
       {{"VIRTUAL_ENV", venv}, {"PATH", venv + "/bin:" + local + ":" + system}},
       venv + "/bin/python",
       "VIRTUAL_ENV"},
      {"another venv is first in PATH",
       two,
       "lrun",
       of_venv,
       {{"PATH", "/other/bin:" + venv + "/bin:" + system}},
       venv + "/bin/python",
       "beside lrun",
       "'/other/bin/python3' (PATH)"},
      {"another venv is active",
       two,
       ".venv/bin/lrun",
       of_venv,
       {{"VIRTUAL_ENV", "/other"}, {"PATH", "/other/bin:" + system}},
       venv + "/bin/python",
       "beside lrun",
       "'/other/bin/python' (VIRTUAL_ENV)"},
      {"a third venv is before the active one",
       two,
       "lrun",
       "/usr/bin/lrun",
       {{"VIRTUAL_ENV", "/other"}, {"PATH", "/third/bin:/other/bin:" + system}},
       "/other/bin/python",
       "VIRTUAL_ENV",
       "'/third/bin/python3' (PATH)"},
      {"the active venv by another path",
       MadeUpHost(two).with_link("/data/other/bin", "/other/bin").with_venv("/data/other"),
       "lrun",
       "/usr/bin/lrun",
       {{"VIRTUAL_ENV", "/other"}, {"PATH", "/data/other/bin:" + system}},
       "/other/bin/python",
       "VIRTUAL_ENV"},
      {"shims of pyenv",
       MadeUpHost(two).with({"/home/me/.pyenv/shims/python3"}),
       "lrun",
       "/usr/bin/lrun",
       {{"VIRTUAL_ENV", "/other"}, {"PATH", "/home/me/.pyenv/shims:" + system}},
       "/other/bin/python",
       "VIRTUAL_ENV"},
      {"a link to lrun in a venv",
       plain,
       "/home/me/bin/torchrun",
       of_venv,
       {{"PATH", system}},
       venv + "/bin/python",
       "beside lrun"},
      {"a link in a venv to lrun elsewhere",
       plain,
       ".venv/bin/lrun",
       "/opt/lrun/bin/lrun",
       {{"PATH", system}},
       venv + "/bin/python",
       "beside lrun"},
      {"only python3.N",
       MadeUpHost().with({"/py/python3.9", "/py/python3.12", "/py/python3.12-config", "/py/lrun"}),
       "lrun",
       "/py/lrun",
       {{"PATH", "/py"}},
       "python3.12",
       "PATH"},
      {"only python",
       MadeUpHost().with({"/py/python", "/py/lrun"}),
       "lrun",
       "/py/lrun",
       {{"PATH", "/py"}},
       "python",
       "PATH"},
      {"no Python", plain, "lrun", local + "/lrun", {{"PATH", local}}, "python3", "PATH"},
      {"no PATH", plain, "/x/lrun", "/x/lrun", {}, "python3", "PATH"},
      {"a relative folder in PATH",
       MadeUpHost().with({"/home/ann/project/bin/python3"}),
       "/x/lrun",
       "/x/lrun",
       {{"PATH", "bin"}},
       "python3",
       "PATH"},
  };
}

TEST(PythonChoice, OfEveryLayoutIsTheOneThatUsersMean) {
  for (const Layout& layout : layouts()) {
    SCOPED_TRACE(layout.name);
    const PythonChoice choice = layout.host.python_of(layout.typed, layout.file, layout.variables);
    EXPECT_EQ(choice.program, layout.program);
    EXPECT_EQ(choice.reason, layout.reason);
    EXPECT_FALSE(choice.is_named);
    if (layout.other.empty()) {
      EXPECT_EQ(choice.warning, "");
    } else {
      EXPECT_THAT(choice.warning,
                  AllOf(HasSubstr("'" + layout.program + "' (" + layout.reason + ")"), HasSubstr(layout.other)));
    }
  }
}

TEST(PythonChoice, IsTheNamedOneAboveAll) {
  const MadeUpHost host = MadeUpHost().with_venv("/home/ann/project/.venv").with({"/home/ann/project/.venv/bin/lrun"});
  const Variables active{
      {"VIRTUAL_ENV", "/home/ann/project/.venv"}, {"PATH", "/usr/bin"}, {"PYTHON_EXEC", "/opt/python"}};
  const auto choice = [&](const NamedPython& asked) { return host.python_of(".venv/bin/lrun", "", active, asked); };
  EXPECT_EQ(choice({}), (PythonChoice{"/opt/python", "/opt/python", "PYTHON_EXEC", true, false}));
  EXPECT_EQ(choice({"/py/python", "--python"}), (PythonChoice{"/py/python", "/py/python", "--python", true, false}));
  EXPECT_EQ(choice({"env/bin/python", "--python"}).program, "/home/ann/project/env/bin/python")
      << "--chdir does not change it";
  EXPECT_EQ(choice({"python3.12", "LRUN_PYTHON"}).program, "python3.12") << "each host looks in its PATH";
  EXPECT_EQ(host.python_of("lrun", "", {{"LRUN_MODULE_PYTHON", "/opt/python"}, {"PATH", "/usr/bin"}}).reason,
            "python -m lrun");
}

TEST(PythonChoice, KnowsWhereANameOfPathLies) {
  EXPECT_EQ(MadeUpHost().python_of("/x/lrun", "/x/lrun", {{"PATH", "/bin:/usr/bin"}}).path, "/usr/bin/python3");
  EXPECT_EQ(MadeUpHost().python_of("/x/lrun", "/x/lrun", {{"PATH", "/bin"}}).path, "");
}

TEST(PythonChoice, KnowsWhetherItCanBeExecuted) {
  const auto is_there = [](const std::string& program, const char* path) {
    return MadeUpHost().python_of("/x/lrun", "/x/lrun", {{"PATH", path}}, {program, "--python"}).is_there;
  };
  EXPECT_TRUE(is_there("/usr/bin/python3", "/bin"));
  EXPECT_FALSE(is_there("/usr/bin", "/bin"));
  EXPECT_TRUE(is_there("python3.11", "/bin:/usr/bin"));
  EXPECT_FALSE(is_there("python3.11", "/bin"));
  EXPECT_TRUE(is_there("", "/usr/bin"));
  EXPECT_FALSE(is_there("", "/bin"));
}

TEST(PythonChoice, SaysThatTheEnvironmentOfLrunHasNone) {
  const auto warning = [](const Paths& paths) {
    return MadeUpHost().with(paths).python_of("/moved/bin/lrun", "/moved/bin/lrun", {{"PATH", "/usr/bin"}}).warning;
  };
  EXPECT_EQ(warning({"/moved/bin/lrun", "/moved/pyvenv.cfg"}),
            "lrun's own environment is '/moved', which has no Python; '--python PATH' names one");
  EXPECT_EQ(warning({"/moved/bin/lrun", "/moved/conda-meta/history"}), "") << "conda's may be one without Python";
}

TEST(PythonChoice, SaysThatTheActiveEnvironmentHasNone) {
  const PythonChoice choice =
      MadeUpHost().python_of("/x/lrun", "/x/lrun", {{"VIRTUAL_ENV", "/gone"}, {"PATH", "/usr/bin"}});
  EXPECT_EQ(choice.program, "python3");
  EXPECT_EQ(choice.warning, "VIRTUAL_ENV is '/gone', which has no Python; '--python PATH' names one");
}

}  // namespace
}  // namespace lrun::launcher
