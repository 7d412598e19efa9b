#include "support/lrun_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <system_error>
#include <thread>

#include "process/forked_helper.h"
#include "process/guard.h"
#include "process/waker.h"

namespace lrun::test {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') pids.push_back(std::stoi(entry->d_name));
  }
  return pids;
}

/// The fields of /proc/PID/stat after the command: state, parent, ...
std::string stat_fields(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto command_end = stat.rfind(')');
  return command_end == std::string::npos ? std::string() : stat.substr(command_end + 2);
}

/// The words of LRUN_TEST_UNDER.
std::vector<std::string> wrapper() {
  const char* const text = std::getenv("LRUN_TEST_UNDER");
  std::istringstream words(text == nullptr ? "" : text);
  return {std::istream_iterator<std::string>(words), {}};
}

/// Tests choose the files that lrun finds: none of its own that are there by chance.
bool is_kept(std::string_view entry) {
  if (entry.starts_with("LRUN_NO_PIDFD=") || entry.starts_with("LRUN_NO_CGROUP=")) return true;
  return !entry.starts_with("LRUN_") && !entry.starts_with("PET_") && !entry.starts_with("OMP_");
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

std::string program_name(pid_t pid) {
  std::string name = read_file("/proc/" + std::to_string(pid) + "/comm");
  if (!name.empty()) name.pop_back();
  return name;
}

char process_state(pid_t pid) {
  const std::string fields = stat_fields(pid);
  return fields.empty() ? ' ' : fields[0];
}

bool kill_both(LrunProcess& lrun) {
  const pid_t launcher = lrun.launcher_pid();
  lrun.signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return process_state(lrun.pid()) == 'T'; }));  // else it may see the launcher die
  ::kill(launcher, SIGKILL);
  lrun.signal(SIGKILL);
  return lrun.wait().signal_number == SIGKILL;
}

pid_t pid_of_rank(const LrunProcess& lrun, int rank) {
  for (const pid_t pid : lrun.workers()) {
    if (environment_of(pid).find("\nRANK=" + std::to_string(rank) + "\n") != std::string::npos) return pid;
  }
  return kNoProcess;
}

std::vector<pid_t> living_children(pid_t parent) {
  std::vector<pid_t> children;
  for (const pid_t pid : all_pids()) {
    const std::string fields = stat_fields(pid);
    if (fields.size() > 2 && fields[0] != 'Z' && std::stoi(fields.substr(2)) == parent) children.push_back(pid);
  }
  return children;
}

std::string environment_of(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  std::string text = read_file(process + "/environ");
  // Within its exec a process shows no environment. One without a program, too, is a thread of the kernel or a zombie.
  for (int tries = 0; text.empty() && tries < 1000; ++tries) {
    std::error_code no_program;
    (void)std::filesystem::read_symlink(process + "/exe", no_program);
    if (no_program) break;
    ::sched_yield();
    text = read_file(process + "/environ");
  }
  text.insert(0, 1, '\n');
  std::replace(text.begin(), text.end(), '\0', '\n');
  return text;
}

int zombie_children(pid_t parent) {
  int count = 0;
  for (const pid_t pid : all_pids()) {
    const std::string fields = stat_fields(pid);
    if (fields.size() > 2 && fields[0] == 'Z' && std::stoi(fields.substr(2)) == parent) ++count;
  }
  return count;
}

LrunProcess::LrunProcess(std::vector<std::string> arguments, const Options& options) {
  mark_ = "LRUN_STATE=" + state_.path().string();
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool replaced = options.environment.count(std::string(text.substr(0, text.find('=')))) > 0;
    if (!replaced && is_kept(text)) environment.emplace_back(text);
  }
  environment.push_back(mark_);
  for (const auto& [name, value] : options.environment) environment.push_back(name + "=" + value);
  arguments.insert(arguments.begin(), options.program.empty() ? LRUN_PROGRAM : options.program);
  const std::vector<std::string> under = wrapper();
  arguments.insert(arguments.begin(), under.begin(), under.end());
  const std::vector<char*> argv = pointers_to(arguments);
  const std::vector<char*> envp = pointers_to(environment);

  Pipe out;
  Pipe err;
  int terminal = -1;
  if (options.terminal) {
    pid_ = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  } else {
    out = make_pipe();
    err = make_pipe();
    pid_ = ::fork();
  }
  if (pid_ == 0) {
    if (!options.terminal) {
      ::dup2(out.write.get(), 1);
      ::dup2(err.write.get(), 2);
    }
    if (options.before_exec) options.before_exec();
    ::execvpe(argv.front(), argv.data(), envp.data());
    ::_exit(99);
  }
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (options.terminal) {
    ::fcntl(terminal, F_SETFD, FD_CLOEXEC);
    err_fd_ = Fd(terminal);
  } else {
    out_fd_ = std::move(out.read);
    err_fd_ = std::move(err.read);
  }
}

LrunProcess::~LrunProcess() {
  if (!reaped_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  // A second is promised after any end of lrun, by a machine that has nothing else to do.
  const bool clean = eventually([this] { return processes().empty(); });
  EXPECT_TRUE(clean) << processes().size() << " processes were left behind";
  for (const pid_t pid : processes()) ::kill(pid, SIGKILL);
}

bool LrunProcess::read_some(std::chrono::milliseconds limit) {
  pollfd polled[] = {{out_fd_.get(), POLLIN, 0}, {err_fd_.get(), POLLIN, 0}};
  if (!out_fd_ && !err_fd_) return false;
  if (::poll(polled, 2, static_cast<int>(limit.count())) <= 0) return false;
  for (const bool is_out : {true, false}) {
    Fd& fd = is_out ? out_fd_ : err_fd_;
    if (!fd || polled[is_out ? 0 : 1].revents == 0) continue;
    char buffer[65536];
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count > 0) {
      (is_out ? out_ : err_).append(buffer, static_cast<std::size_t>(count));
    } else {
      fd.reset();  // also EIO: the terminal's last user has gone
    }
  }
  return true;
}

bool LrunProcess::wait_for(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (out_.find(text) == std::string::npos && err_.find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    if (!read_some(1000ms) && !out_fd_ && !err_fd_) return false;
  }
  return true;
}

bool LrunProcess::read_until(const std::function<bool()>& condition) {
  return eventually([&] {
    while (read_some(0ms)) {
    }
    return condition();
  });
}

LrunEnd LrunProcess::wait() {
  if (reaped_) return end_;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  siginfo_t info{};
  const bool ended = eventually([&] {
    while (read_some(0ms)) {
    }
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) == 0 && info.si_pid == pid_;
  });
  if (!ended) {
    ADD_FAILURE() << "lrun did not end; stdout: " << out_ << " stderr: " << err_;
    return end_;
  }
  reaped_ = true;
  while ((out_fd_ || err_fd_) && std::chrono::steady_clock::now() < deadline && read_some(200ms)) {
  }
  end_.exited = info.si_code == CLD_EXITED;
  (end_.exited ? end_.code : end_.signal_number) = info.si_status;
  return end_;
}

void LrunProcess::signal(int signal_number) const { ::kill(pid_, signal_number); }

void LrunProcess::type(const std::string& keys) const {
  EXPECT_EQ(::write(err_fd_.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

void LrunProcess::close_stdout() { out_fd_.reset(); }

std::filesystem::path LrunProcess::run_folder() const {
  const auto first_in = [](const std::filesystem::path& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.is_directory() && entry.path().filename() != "head_of_run")
        return entry.path();  // which has no workers
    }
    return std::filesystem::path();
  };
  const std::filesystem::path run = first_in(state_.path());
  const auto has = [&run](const char* name) { return std::filesystem::exists(run / name); };
  const bool is_its_own = run.empty() || has("lock") || has("lock.new") || first_in(run).empty();
  return is_its_own ? run : first_in(run);
}

std::vector<pid_t> LrunProcess::children() const { return living_children(pid_); }

pid_t LrunProcess::launcher_pid() const {
  std::vector<pid_t> children = living_children(pid_);
  std::erase_if(children, [](pid_t pid) { return program_name(pid) == kWakerName; });
  return children.empty() ? kNoProcess : children.front();
}

pid_t LrunProcess::waker_pid() const {
  const std::vector<pid_t> children = living_children(pid_);
  const auto waker = std::ranges::find(children, kWakerName, program_name);
  return waker == children.end() ? kNoProcess : *waker;
}

bool LrunProcess::is_process(pid_t pid) const {
  return environment_of(pid).find(mark_) != std::string::npos && process_state(pid) != 'Z';
}

std::vector<pid_t> LrunProcess::processes() const {
  std::vector<pid_t> found;
  for (const pid_t pid : all_pids()) {
    if (is_process(pid)) found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> LrunProcess::workers() const {
  std::vector<pid_t> found = processes();
  const pid_t launcher = launcher_pid();
  // One that has ended meanwhile has no name: it may have been the waker or a helper.
  std::erase_if(found, [&](pid_t pid) {
    const std::string name = program_name(pid);
    return pid == pid_ || pid == launcher || name == kWakerName || name == kCopierName || name == kNoticeName ||
           !is_process(pid);
  });
  return found;
}

}  // namespace lrun::test
