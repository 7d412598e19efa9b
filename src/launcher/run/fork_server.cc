// In: a Python, modules, and requests for ranks. Out: ranks, as children of this process. preload() makes one, and
// AttemptLoop starts its workers through it. The other side is fork_server.py.
#include "run/fork_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "fork_server_text.h"
#include "plan/python_program.h"
#include "process/descriptor_channel.h"
#include "run/stored_zip.h"

namespace lrun::launcher {
namespace {

/// Together shorter than a heartbeat, which this launcher does not send meanwhile.
constexpr Duration kForkLimit(2000);
constexpr Duration kEndLimit(500);
constexpr Duration kExitLimit(100);  // of one that has closed its channel
constexpr char kGo = 'g';
/// Where the interpreter finds the archive: behind the channel.
constexpr std::string_view kArchivePath = "/proc/self/fd/4";
constexpr std::string_view kSearchPath = "PYTHONPATH=";
constexpr std::string_view kStage = "LRUN_FORK_SERVER=";

[[noreturn]] void fail(const char* call) { throw std::system_error(errno, std::generic_category(), call); }

Fd make_memory() {
  Fd memory(::memfd_create("lrun-fork-server", MFD_CLOEXEC));
  if (!memory) fail("memfd_create");
  return memory;
}

Fd memory_with(std::string_view bytes) {
  Fd memory = make_memory();
  if (const int error = write_all(memory.get(), bytes); error != 0) {
    throw std::system_error(error, std::generic_category(), "write");
  }
  return memory;
}

/// Empty: the user has none.
std::string search_path_in(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(kSearchPath)) return entry.substr(kSearchPath.size());
  }
  return {};
}

/// With the archive in front of the modules that Python finds.
std::vector<std::string> with_archive(std::vector<std::string> environment) {
  const std::string users = search_path_in(environment);
  std::erase_if(environment,
                [](const std::string& entry) { return entry.starts_with(kSearchPath) || entry.starts_with(kStage); });
  environment.push_back(std::string(kSearchPath).append(kArchivePath).append(users.empty() ? "" : ":" + users));
  environment.push_back(std::string(kStage) + "probe");
  return environment;
}

std::string cpu_list(const SpawnRequest& request) {
  std::string list;
  for (std::size_t cpu = 0; request.cpus != nullptr && cpu < request.cpus_bytes * 8; ++cpu) {
    if (CPU_ISSET_S(cpu, request.cpus_bytes, request.cpus)) list += (list.empty() ? "" : ",") + std::to_string(cpu);
  }
  return list;
}

/// Else the process itself has made it, or the kernel for what it did.
bool is_sent_by_others(int signal_number) {
  constexpr std::array kSent{SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  return std::find(kSent.begin(), kSent.end(), signal_number) != kSent.end();
}

bool is_child(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/// Those that the answer names, as far as they are children of this process.
std::vector<PidFd> ranks_in(const std::optional<ForkServerAnswer>& answer) {
  std::vector<PidFd> ranks;
  if (!answer) return ranks;
  for (const pid_t pid : answer->pids) {
    if (is_child(pid)) ranks.push_back(PidFd::of_child(pid));
  }
  return ranks;
}

}  // namespace

ForkServer::ForkServer(EventLoop& loop, Order order, const SpawnDefaults& defaults, Events events)
    : order_(std::move(order)), events_(std::move(events)) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
  channel_ = Fd(ends[0]);
  const Fd theirs(ends[1]);
  import_ = make_memory();
  if (::ftruncate(import_.get(), kMostImportBytes) != 0) fail("ftruncate");
  const Fd archive = memory_with(stored_zip("sitecustomize.py", kForkServerText));
  // Python asks once whether its streams can seek, and those of ranks are pipes, mostly. A module that reads meets the
  // end.
  const Pipe pipe = make_pipe();
  const Fd input = std::move(make_pipe().read);
  const std::array<int, 2> extras{theirs.get(), archive.get()};
  std::vector<std::string> probe = parts_of_python(order_.argv).python;
  probe.insert(probe.end(), {"-c", "pass"});
  const std::vector<std::string> environment = with_archive(order_.environment);
  const std::vector<char*> argv = argument_pointers(probe);
  const std::vector<char*> envp = argument_pointers(environment);
  SpawnRequest request{.path = order_.path.c_str(), .argv = argv.data(), .envp = envp.data()};
  request.standard_input = input.get();
  request.standard_output = request.standard_error = pipe.write.get();
  if (!order_.folder.empty()) request.folder = order_.folder.c_str();
  request.limits = order_.limits;
  request.extras = extras;
  SpawnResult result = spawn(request, defaults);
  if (!result.ok())
    throw std::system_error(result.error_number, std::generic_category(), "execute '" + order_.path + "'");
  child_ = std::move(result.child);
  if (child_->poll_fd() < 0) {  // else its number may be another's by the time that it is signalled
    child_->signal(SIGKILL);
    throw std::system_error(ENOSYS, std::generic_category(), "pidfd_open");
  }
  readable_ = loop.on_readable(channel_.get(), [this] { receive(); });
}

ForkServer::~ForkServer() {
  if (!events_.ready) {  // it listens, and writes what it has learned
    channel_.reset();
    (void)child_->wait_until_ended(kEndLimit);
  }
  give_up("the run is over");
}

/// The first hello comes from a Python with a program that does nothing, the second from the one with the user's.
void ForkServer::receive() {
  using enum ForkServerAnswer::Kind;
  const std::optional<ForkServerAnswer> answer = next_answer(Duration::zero());
  if (!answer) return become_unfit(hellos_ == 0 ? "this Python runs no 'sitecustomize'" : why_ended());
  if (answer->kind == kReady) return settle().ready(answer->text);
  if (answer->kind == kUnfit) return become_unfit(answer->text);
  ++hellos_;
  std::vector<std::string> fields{order_.modules, order_.learned, std::to_string(::getpid()),
                                  search_path_in(order_.environment), order_.path};
  fields.insert(fields.end(), order_.argv.begin(), order_.argv.end());
  if (answer->kind != kHello || hellos_ > 2 || !send(fields, {import_.get()}))
    become_unfit("the interpreter has sent something else");
}

ForkServer::Events ForkServer::settle() {
  readable_.cancel();
  return std::exchange(events_, {});
}

/// \param why  no rank can be forked
void ForkServer::become_unfit(const std::string& why) {
  const Events events = settle();
  give_up(why);
  events.unfit(why);
}

/// What ended by itself, or crashed, did so because of the module.
std::string ForkServer::why_ended() const {
  const std::optional<UnfinishedImport> unfinished = unfinished_import();
  if (!unfinished) return "the interpreter has ended";
  const auto status = child_->wait_until_ended(kEndLimit) ? child_->ending() : std::nullopt;
  const bool is_to_blame = status && (status->kind == ExitStatus::Kind::kExited || !is_sent_by_others(status->value));
  if (!is_to_blame) return "the interpreter has ended during the import of '" + unfinished->module + "'";
  return "the import of '" + unfinished->module + "' has ended the interpreter" + leave_out(*unfinished);
}

std::optional<UnfinishedImport> ForkServer::unfinished_import() const {
  std::array<char, kMostImportBytes> bytes{};
  const ssize_t size = ::pread(import_.get(), bytes.data(), bytes.size(), 0);
  return size > 0 ? parse_unfinished_import({bytes.data(), static_cast<std::size_t>(size)}) : std::nullopt;
}

bool ForkServer::send(const std::vector<std::string>& fields, std::vector<int> descriptors) const try {
  std::string bytes;
  for (const std::string& field : fields) bytes.append(field).push_back('\0');
  const Fd memory = memory_with(bytes);
  descriptors.insert(descriptors.begin(), memory.get());
  return send_descriptors(channel_.get(), descriptors);
} catch (const std::system_error&) {
  return false;
}

/// Empty: none came, or the other end is closed.
std::optional<ForkServerAnswer> ForkServer::next_answer(Duration limit) const {
  pollfd readable{channel_.get(), POLLIN, 0};
  if (::poll(&readable, 1, static_cast<int>(limit.count())) <= 0) return std::nullopt;
  std::array<char, kMostAnswerBytes + 1> bytes{};
  const ssize_t size = ::recv(channel_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size <= 0) return std::nullopt;
  return parse_fork_server_answer({bytes.data(), static_cast<std::size_t>(size)});
}

/// \param go  from which they all read before they begin: of the first one; -1: this is another one
/// \param more_follow  ranks that are to be forked together with this one
bool ForkServer::send(const SpawnRequest& request, int go, bool more_follow) const {
  std::vector<std::string> fields{more_follow ? "m" : "", cpu_list(request), ""};
  std::size_t words = 0;
  for (; request.argv[words] != nullptr; ++words) fields.emplace_back(request.argv[words]);
  fields[2] = std::to_string(words);
  for (char* const* entry = request.envp; *entry != nullptr; ++entry) fields.emplace_back(*entry);
  std::vector<int> descriptors{request.standard_input, request.standard_output, request.standard_error};
  if (!request.extras.empty()) {
    fields[0] += 'x';
    descriptors.push_back(request.extras.front());
  }
  if (request.cgroup >= 0) {
    fields[0] += 'c';
    descriptors.push_back(request.cgroup);
  }
  if (go >= 0) descriptors.push_back(go);
  return send(fields, std::move(descriptors));
}

std::size_t ForkServer::at_a_time() const {
  constexpr Duration kMoment(500);
  constexpr Duration::rep kMost = 8;
  if (is_given_up()) return kMost;
  if (rank_time_ == Duration::zero()) return 1;
  return static_cast<std::size_t>(std::clamp<Duration::rep>(kMoment / rank_time_, 1, kMost));
}

std::vector<PidFd> ForkServer::fork(std::span<const SpawnRequest> requests) {
  if (is_given_up()) return {};
  const SteadyTime began = steady_now();
  try {
    go_ = make_pipe();
  } catch (const std::system_error& error) {
    give_up(error.code().message());
    return {};
  }
  std::size_t sent = 0;
  while (sent < requests.size() && send(requests[sent], sent == 0 ? go_.read.get() : -1, sent + 1 < requests.size())) {
    ++sent;
  }
  std::vector<PidFd> ranks;
  if (sent == requests.size()) ranks = ranks_in(next_answer(kForkLimit));
  if (ranks.size() != requests.size()) {
    const bool has_ended = child_->wait_until_ended(kExitLimit);
    give_up(has_ended ? "the fork server has ended" : "the fork server does not answer");
    return {};
  }
  waiting_ = ranks.size();
  const auto took = std::chrono::ceil<Duration>(steady_now() - began);
  rank_time_ = std::max(Duration(1), took / static_cast<Duration::rep>(waiting_));
  return ranks;
}

void ForkServer::begin() {
  (void)write_all(go_.write.get(), std::string(waiting_, kGo));
  go_ = {};
}

/// Ranks that wait for begin() end, too. Processes below the server become this process's, and are ended with all that
/// a run leaves.
void ForkServer::give_up(std::string why) {
  if (is_given_up()) return;
  why_given_up_ = std::move(why);
  go_ = {};
  if (child_->signal(SIGKILL)) child_->signal_group(SIGKILL);  // once it is reaped the group may be another's
  (void)child_->wait_until_ended(kEndLimit);
}

}  // namespace lrun::launcher
