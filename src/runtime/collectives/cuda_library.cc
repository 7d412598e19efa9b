// In: the options of an nccl group. Out: the group, made by liblrun_cuda.so, which is opened here, with the functions
// that need the store. Called by the registry and, for replicas, by the session.
#include "runtime/collectives/cuda_library.h"

#include <dlfcn.h>
#include <lrun/error.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "base/split.h"
#include "runtime/collectives/bootstrap/group_rendezvous.h"
#include "runtime/collectives/bootstrap/peer_watch.h"
#include "runtime/collectives/bootstrap/process_identity.h"
#include "runtime/collectives/bootstrap/shared_gpu.h"
#include "runtime/collectives/bootstrap/store_client.h"
#include "runtime/collectives/common/call_log.h"

namespace lrun::detail {
namespace {

/// The folder that this code was loaded from, with a slash; empty when unknown.
std::string own_folder() {
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&make_with_cuda), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

/// The library stays loaded, as CUDA does not survive being unloaded.
void* open_library() {
  void* library = nullptr;
  for (const std::string& path : {own_folder() + kCudaLibrary, std::string(kCudaLibrary)}) {
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    const char* reason = ::dlerror();
    throw Unsupported("backend 'nccl' needs " + std::string(kCudaLibrary) + ", which does not load (" +
                      (reason == nullptr ? "no reason given" : reason) + "); on the CPUs of one host use 'shm'");
  }
  return library;
}

template <class EntryPoint>
EntryPoint load_entry_point(const char* name) {
  void* symbol = ::dlsym(open_library(), name);
  if (symbol == nullptr) {
    throw Unsupported(std::string(kCudaLibrary) + " is of another version of liblrun: it has no " + name);
  }
  return reinterpret_cast<EntryPoint>(symbol);
}

/// A rank as it introduces itself to the others of its group, in a line.
struct Member {
  GpuOfRank gpu;
  std::optional<ProcessIdentity> process;

  /// NCCL refuses two ranks on one GPU of a host, and lets the user say which host this is: in any characters.
  static std::string line(const ProcessIdentity& process, const std::string& bus_id) {
    const char* named = std::getenv("NCCL_HOSTID");
    const std::size_t host = std::hash<std::string>()(named == nullptr ? process.host : named);
    return std::to_string(host) + '\t' + bus_id + '\t' + process.text();
  }
  static Member parse(std::string_view line) {
    const std::string host(cut(line, '\t'));
    const std::string bus_id(cut(line, '\t'));
    return {{host, bus_id}, ProcessIdentity::parse(std::string(line))};
  }
};

/// The state of a CudaGroup's functions. The group's own name keeps it apart from groups of other backends.
class GroupOfProcesses {
 public:
  explicit GroupOfProcesses(GroupOptions options)
      : options_(std::move(options)),
        calls_(
            options_.rank, options_.world_size,
            [this](const std::string& text) { set(calls_key(options_.rank), text); },
            [this](int rank) { return ask(calls_key(rank)); }, options_.ranks_above) {
    options_.name += "/nccl";
  }

  std::string share(const std::string& text, const std::string& bus_id) {
    if (options_.world_size == 1) return text;
    GroupRendezvous rendezvous(options_);
    std::string first = rendezvous.exchange(text, [](const std::vector<std::string>& lines) { return lines.front(); });
    const std::string all = rendezvous.exchange(Member::line(rendezvous.process(), bus_id), join_lines);
    std::vector<pid_t> pids;
    std::vector<GpuOfRank> gpus;
    for (const std::string& line : split_lines(all)) {
      const Member member = Member::parse(line);
      pids.push_back(member.process ? member.process->pid_for(rendezvous.process()) : 0);
      gpus.push_back(member.gpu);
    }
    if (const std::string reason = describe_shared_gpu(gpus, options_); !reason.empty()) refuse(rendezvous, reason);
    pids[static_cast<std::size_t>(options_.rank)] = 0;
    watch_ = PeerWatch(pids);
    for (int rank = 0; rank < options_.world_size; ++rank) others_.push_back(rank);
    prefix_ = "lrun/nccl/" + std::to_string(rendezvous.identity());
    store_.emplace(options_.store, std::chrono::steady_clock::now() + options_.timeout);
    GroupRendezvous::note_made(options_);
    return first;
  }

  [[nodiscard]] std::optional<std::string> ended_peer() const {
    const std::vector<int> ended = watch_.ended(others_);
    if (ended.empty()) return std::nullopt;
    return "rank " + std::to_string(options_.name_of(ended.front()));
  }

  void tell(const std::string& failure) noexcept { set(prefix_ + "/failure", failure); }
  [[nodiscard]] std::optional<std::string> heard() noexcept { return ask(prefix_ + "/failure").text; }

  [[nodiscard]] CallLog& calls() { return calls_; }
  [[nodiscard]] Failure explain(std::uint64_t sequence) { return calls_.explain(sequence, options_.timeout); }

 private:
  /// All ranks know the reason. Rank 0 may serve the store, and ends after the others have read their answer.
  [[noreturn]] static void refuse(GroupRendezvous& rendezvous, const std::string& reason) {
    try {
      rendezvous.exchange("refused", join_lines);
    } catch (const std::exception&) {
      // Another rank has ended, which is no news.
    }
    throw Unsupported(reason);
  }

  [[nodiscard]] std::string calls_key(int rank) const { return prefix_ + "/calls/" + std::to_string(rank); }

  // Both are best effort: a rank that does not get the message notices the failure itself, later.
  void set(const std::string& key, const std::string& value) noexcept {
    try {
      if (store_) store_->set(key, value, std::chrono::steady_clock::now() + std::chrono::seconds(1));
    } catch (const std::exception&) {
    }
  }
  [[nodiscard]] CallLog::Answer ask(const std::string& key) noexcept {
    CallLog::Answer not_known{.is_known = false, .text = std::nullopt};
    try {
      if (!store_) return not_known;
      return {.text = store_->try_get(key, std::chrono::steady_clock::now() + std::chrono::seconds(1))};
    } catch (const std::exception&) {
      return not_known;
    }
  }

  GroupOptions options_;
  PeerWatch watch_;
  std::vector<int> others_;
  std::string prefix_;  // of keys
  std::optional<StoreClient> store_;
  CallLog calls_;
};

}  // namespace

std::unique_ptr<Collectives> make_with_cuda(const GroupOptions& options) {
  static const auto make = load_entry_point<CudaEntryPoint>(kCudaEntryPoint);
  const auto processes = std::make_shared<GroupOfProcesses>(options);  // shared: by the functions
  const CudaGroup group{
      options,
      [processes](const std::string& text, const std::string& bus_id) { return processes->share(text, bus_id); },
      [processes] { return processes->ended_peer(); },
      [processes](const std::string& failure) { processes->tell(failure); },
      [processes] { return processes->heard(); },
      [processes](const Call& call) { processes->calls().add(call); },
      [processes] { return processes->calls().compare(); },
      [processes](std::uint64_t sequence) { return processes->explain(sequence); }};
  return std::unique_ptr<Collectives>(make(&group));
}

std::unique_ptr<ReplicaLink> make_replica_link(const std::vector<at::Device>& devices) {
  static const auto make = load_entry_point<ReplicaLinkEntryPoint>(kReplicaLinkEntryPoint);
  return std::unique_ptr<ReplicaLink>(make(&devices));
}

}  // namespace lrun::detail
