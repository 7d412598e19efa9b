// A worker that follows a script: fault_actor SCRIPT..., one script per rank. A script is a list of steps between
// commas, each with its value behind a colon; scripts of several attempts stand between slashes, the last one is
// repeated. It reports leaks into its start (an open descriptor of the launcher) in a file.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kScriptIsWrong = 98;
constexpr int kNobodyCame = 97;

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// All of it, also to a pipe that somebody made non-blocking or has closed.
void write_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(fd, text.data() + at, text.size() - at);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return;
    if (count > 0) at += static_cast<std::size_t>(count);
  }
}

void leave(const std::string& file, const std::string& text) {
  const std::string fresh = file + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  write_all(fd, text);
  ::close(fd);
  ::rename(fresh.c_str(), file.c_str());
}

std::string of_this_rank(const std::string& name) {
  return name + "." + std::to_string(number_in("RANK")) + "." + std::to_string(number_in("TORCHELASTIC_RESTART_COUNT"));
}

void sleep_for(long milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  ::nanosleep(&time, nullptr);
}

[[noreturn]] void wait_for_ever() {
  while (true) ::pause();
}

/// The descriptors of a process, by number, without the one that reads them when it is our own.
std::vector<int> descriptors_of(const std::string& process) {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(("/proc/" + process + "/fd").c_str()), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const int fd = std::atoi(entry->d_name);
    const bool ours = process == "self" && fd == ::dirfd(folder.get());
    if (entry->d_name[0] != '.' && !ours) found.push_back(fd);
  }
  return found;
}

/// A worker gets stdin, stdout, stderr, and what the launcher names in LRUN_PROGRESS_FD.
void tell_of_leaked_descriptors() {
  const char* const progress = std::getenv("LRUN_PROGRESS_FD");
  for (const int fd : descriptors_of("self")) {
    if (fd <= STDERR_FILENO || (progress != nullptr && fd == std::atoi(progress))) continue;
    char target[PATH_MAX] = {};
    (void)!::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target - 1);
    leave(of_this_rank("problem"), "it was started with descriptor " + std::to_string(fd) + ", " + target);
  }
}

/// Held by this process and everything it starts, to the last of them.
void hold_sign_of_life() { ::flock(::open("alive", O_RDWR | O_CREAT | O_CLOEXEC, 0600), LOCK_SH); }

/// Nobody wants a core, also not where the system pipes cores to a program.
void leave_no_core() { ::prctl(PR_SET_DUMPABLE, 0); }

void tell_ready() { leave(of_this_rank("ready"), std::to_string(::getpid())); }

/// Returns when all ranks of this attempt have come so far.
void meet() {
  tell_ready();
  const std::string attempt = "." + std::to_string(number_in("TORCHELASTIC_RESTART_COUNT"));
  for (int rank = 0, tries = 0; rank < number_in("WORLD_SIZE"); ++tries) {
    if (::access(("ready." + std::to_string(rank) + attempt).c_str(), F_OK) == 0) {
      ++rank;
    } else if (tries < 60'000) {
      sleep_for(1);
    } else {
      ::_exit(kNobodyCame);
    }
  }
}

void print_lines(std::size_t bytes) {
  const std::string line = std::string(79, 'x') + "\n";
  std::string text;
  while (text.size() < bytes) text += line;
  write_all(bytes % 2 == 0 ? STDOUT_FILENO : STDERR_FILENO, text);
}

void print_without_end(std::size_t bytes) {
  write_all(bytes % 2 == 0 ? STDOUT_FILENO : STDERR_FILENO, std::string(bytes, 'y'));
}

/// Bytes that are no text: zeros, controls, half characters, escape sequences.
void print_bytes(std::size_t bytes) {
  std::string text(bytes, '\0');
  std::uint32_t state = 1;
  for (char& byte : text) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24U);
  }
  write_all(bytes % 2 == 0 ? STDOUT_FILENO : STDERR_FILENO, text);
}

/// Both streams may be somebody else's as well.
void make_outputs_nonblocking() {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::fcntl(fd, F_SETFL, O_NONBLOCK | ::fcntl(fd, F_GETFL));
}

/// Waits in the kernel for a child that never comes to its exec.
void wait_in_vfork() {
  if (::vfork() == 0) wait_for_ever();
}

void ignore_requests_to_end() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) ::signal(number, SIG_IGN);
}

int code_of_obedience = 0;

void obey_with(int code) {
  code_of_obedience = code;
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    ::signal(number, [](int) { ::_exit(code_of_obedience); });
  }
}

/// Always another process: a reader finds one that has ended. It gives up after a while if no reader comes.
[[noreturn]] void respawn() {
  ::signal(SIGCHLD, SIG_IGN);
  for (int generation = 0; generation < 30'000; ++generation) {
    if (::fork() != 0) ::_exit(0);
    ::setsid();
    const timespec moment{0, 100'000};
    ::nanosleep(&moment, nullptr);
  }
  leave(of_this_rank("problem"), "30000 generations of a process that nobody ended");
  ::_exit(0);
}

/// 'group' stays in the worker's process group, 'session' leaves it, 'quiet' holds no pipe of the worker's either,
/// 'orphan' is a grandchild whose parent has ended, 'respawn' one that is started anew all the time.
void leave_child(const std::string& kind) {
  if (::fork() != 0) return;
  if (kind != "group") ::setsid();
  if (kind == "orphan" && ::fork() != 0) ::_exit(0);
  if (kind == "respawn") respawn();
  if (kind == "quiet") {
    ::close(STDOUT_FILENO);
    ::close(STDERR_FILENO);
  }
  ignore_requests_to_end();
  wait_for_ever();
}

void chatter() {
  while (true) {
    write_all(STDOUT_FILENO, "a line of talk\n");
    sleep_for(1);
  }
}

void use_all_descriptors() {
  const rlimit limit{32, 32};
  ::setrlimit(RLIMIT_NOFILE, &limit);
  while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
  }
}

/// The fewest of several looks: for a moment the launcher has more, as when it reads a folder.
void count_descriptors_of_launcher() {
  std::size_t fewest = SIZE_MAX;
  for (int look = 0; look < 10; ++look) {
    fewest = std::min(fewest, descriptors_of(std::to_string(::getppid())).size());
    sleep_for(3);
  }
  leave(of_this_rank("files"), std::to_string(fewest));
}

/// The lock goes with the culprit. A rank that waits for it loses a peer as a collective operation does.
void hold_connection() {
  const int fd = ::open("connection", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ::flock(fd, LOCK_EX);
  (void)!::ftruncate(fd, 0);  // of another attempt
  write_all(fd, std::to_string(::getpid()));
}

/// \return  the file that the culprit held
int wait_for_lost_connection() {
  const int fd = ::open("connection", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ::flock(fd, LOCK_SH);
  return fd;
}

/// A dying process gives its locks back first: a busy machine may keep it from its end for longer than others outlive
/// it.
void wait_for_the_culprits_end() {
  char text[16] = {};
  (void)!::read(wait_for_lost_connection(), text, sizeof text - 1);
  pollfd culprit{static_cast<int>(::syscall(SYS_pidfd_open, std::atoi(text), 0)), POLLIN, 0};
  if (culprit.fd >= 0) ::poll(&culprit, 1, -1);
}

void lose_connection() {
  (void)wait_for_lost_connection();
  write_all(STDERR_FILENO, "RuntimeError: Connection closed by peer\n");
  ::_exit(1);
}

void close_outputs() {
  ::close(STDOUT_FILENO);
  ::close(STDERR_FILENO);
}

void crash() {
  leave_no_core();
  *const_cast<volatile int*>(static_cast<int*>(nullptr)) = 1;
}

void raise_by_default(int signal_number) {
  leave_no_core();
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

void play(const std::vector<std::string>& steps, std::size_t from);

struct Rest {
  const std::vector<std::string>* steps;
  std::size_t from;
};

/// The leader of the process ends as a thread; the process goes on without it.
void go_on_without_leader(const std::vector<std::string>& steps, std::size_t from) {
  static Rest rest;
  rest = {&steps, from};
  pthread_t thread{};
  ::pthread_create(
      &thread, nullptr,
      [](void* argument) -> void* {
        const auto* const left = static_cast<const Rest*>(argument);
        play(*left->steps, left->from);
        ::_exit(0);
      },
      &rest);
  ::syscall(SYS_exit, 0);  // this thread alone; pthread_exit() would have to unwind it
}

const std::map<std::string, std::function<void(const std::string&)>>& all_steps() {
  using Value = const std::string&;
  static const std::map<std::string, std::function<void(Value)>> kSteps{
      {"meet", [](Value) { meet(); }},
      {"ready", [](Value) { tell_ready(); }},
      {"sleep", [](Value value) { sleep_for(std::stol(value)); }},
      {"wait", [](Value) { wait_for_ever(); }},
      {"print", [](Value value) { print_lines(std::stoul(value)); }},
      {"line", [](Value value) { print_without_end(std::stoul(value)); }},
      {"binary", [](Value value) { print_bytes(std::stoul(value)); }},
      {"nonblock", [](Value) { make_outputs_nonblocking(); }},
      {"vfork", [](Value) { wait_in_vfork(); }},
      {"chatter", [](Value) { chatter(); }},
      {"ignore", [](Value) { ignore_requests_to_end(); }},
      {"obey", [](Value value) { obey_with(std::stoi(value)); }},
      {"child", [](Value value) { leave_child(value); }},
      {"close", [](Value) { close_outputs(); }},
      {"files", [](Value) { use_all_descriptors(); }},
      {"hold", [](Value) { hold_connection(); }},
      {"follow", [](Value) { lose_connection(); }},
      {"outlive",
       [](Value value) {
         wait_for_the_culprits_end();
         sleep_for(std::stol(value));
       }},
      {"count", [](Value) { count_descriptors_of_launcher(); }},
      {"stop", [](Value) { ::raise(SIGSTOP); }},
      {"exit", [](Value value) { ::_exit(std::stoi(value)); }},
      {"raise", [](Value value) { raise_by_default(std::stoi(value)); }},
      {"group", [](Value value) { ::kill(0, std::stoi(value)); }},
      {"crash", [](Value) { crash(); }},
      {"abort",
       [](Value) {
         leave_no_core();
         std::abort();
       }},
  };
  return kSteps;
}

void play(const std::vector<std::string>& steps, std::size_t from) {
  for (std::size_t i = from; i < steps.size(); ++i) {
    const auto colon = steps[i].find(':');
    const std::string name = steps[i].substr(0, colon);
    if (name == "leaderless") go_on_without_leader(steps, i + 1);
    const auto step = all_steps().find(name);
    if (step == all_steps().end()) ::_exit(kScriptIsWrong);
    step->second(colon == std::string::npos ? std::string() : steps[i].substr(colon + 1));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int rank = number_in("RANK");
  if (rank + 1 >= argc) return kScriptIsWrong;
  tell_of_leaked_descriptors();
  hold_sign_of_life();
  const std::vector<std::string> attempts = split(argv[rank + 1], '/');
  if (attempts.empty()) return kScriptIsWrong;
  const auto attempt = static_cast<std::size_t>(number_in("TORCHELASTIC_RESTART_COUNT"));
  static std::vector<std::string> steps;  // outlives main's thread
  steps = split(attempts[attempt < attempts.size() ? attempt : attempts.size() - 1], ',');
  play(steps, 0);
  ::_exit(0);
}
