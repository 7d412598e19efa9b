// In: the options of a group on one host. Out: memory that all its ranks have mapped, and their processes. Called by
// make_shm().
#include "runtime/collectives/shm/setup.h"

#include <lrun/error.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/split.h"
#include "runtime/collectives/bootstrap/group_rendezvous.h"
#include "runtime/collectives/bootstrap/process_identity.h"
#include "runtime/collectives/common/byte_lock.h"

namespace lrun::detail {
namespace {

/// The identity of a rank: one line in the store.
struct Identity {
  std::uint32_t version = kLayoutVersion;
  ProcessIdentity process;

  [[nodiscard]] std::string line() const { return std::to_string(version) + ' ' + process.text(); }
  static Identity parse(const std::string& line);
};

Identity Identity::parse(const std::string& line) {
  Identity identity;
  std::istringstream words(line);
  std::string rest;
  if (words >> identity.version && std::getline(words, rest)) {
    if (const auto process = ProcessIdentity::parse(rest)) {
      identity.process = *process;
      return identity;
    }
  }
  throw Error("a rank of the group says '" + line + "' in the store, which is not of this version of liblrun");
}

/// Throws the same on all ranks if they cannot share memory.
void check_identities(const std::vector<Identity>& identities) {
  std::set<std::string> hosts;
  for (std::size_t rank = 0; rank < identities.size(); ++rank) {
    hosts.insert(identities[rank].process.host);
    if (identities[rank].version == identities[0].version) continue;
    throw Error("rank " + std::to_string(rank) + " and rank 0 are linked with different versions of liblrun");
  }
  if (hosts.size() == 1) return;
  throw Unsupported("the ranks are on " + std::to_string(hosts.size()) +
                    " hosts: backend 'shm' works on one, between several use 'auto' or 'gloo'");
}

/// The file of rank 0 in /dev/shm. The destructor unlinks it.
class NamedFile {
 public:
  explicit NamedFile(const std::string& name) : name_(name) {}
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;
  ~NamedFile() {
    if (created_) SharedMemory::unlink_named(name_);
  }

  SharedMemory create() {
    SharedMemory memory = SharedMemory::create_named(name_);
    created_ = true;
    return memory;
  }

 private:
  const std::string& name_;
  bool created_ = false;
};

/// One rank's steps to the memory of all.
class Sharing {
 public:
  explicit Sharing(const GroupOptions& options) : options_(options), rendezvous_(options) {}

  ShmSetup run() {
    meet();
    if (!share_memfd()) share_named();
    watch_locks();
    return std::move(setup_);
  }

 private:
  void meet();
  bool share_memfd();
  void share_named();
  std::string open(const std::function<SharedMemory()>& opener);
  void lock_own_byte();
  void watch_locks();
  std::string populate_slots();
  std::string agree(const std::string& said);
  [[nodiscard]] bool creates() const { return options_.rank == 0; }

  const GroupOptions options_;
  GroupRendezvous rendezvous_;
  std::vector<Identity> identities_;
  pid_t creator_ = 0;  // rank 0 as seen from here; 0: in another pid namespace
  ShmSetup setup_;
};

void Sharing::meet() {
  const Identity mine{kLayoutVersion, rendezvous_.process()};
  const std::string all = rendezvous_.exchange(mine.line(), join_lines);
  for (const std::string& line : split_lines(all)) identities_.push_back(Identity::parse(line));
  check_identities(identities_);
  std::vector<pid_t> watched;
  for (const auto& [version, process] : identities_) {
    setup_.pids.push_back(process.pid);
    watched.push_back(process.pid_for(mine.process));
  }
  setup_.watch = PeerWatch(watched);
  creator_ = watched[0];
}

/// Opens and maps; keeps both only when both work. \return  empty, or why not.
std::string Sharing::open(const std::function<SharedMemory()>& opener) {
  try {
    SharedMemory memory = opener();
    setup_.region = creates() ? ShmRegion::create(memory, options_.world_size, rendezvous_.identity())
                              : ShmRegion::open(memory, options_.world_size, rendezvous_.identity());
    setup_.memory = std::move(memory);
    lock_own_byte();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// For ranks in other pid namespaces. Ranks of one process would share its locks, and lose all of them when the first
/// one closes its memory.
void Sharing::lock_own_byte() {
  const auto rank = static_cast<std::size_t>(options_.rank);
  const auto shares_process = [&](const Identity& other) { return other.process == identities_[rank].process; };
  if (std::ranges::count_if(identities_, shares_process) > 1) return;
  if (lock_byte(setup_.memory.fd(), rank)) setup_.region.cell(options_.rank).locks_byte = 1;
}

/// All ranks have the memory now, and hold their locks.
void Sharing::watch_locks() {
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (rank != options_.rank && setup_.region.cell(rank).locks_byte == 1) {
      setup_.watch.watch_lock(rank, setup_.memory.fd());
    }
  }
}

/// A full /dev/shm, as of a container with the 64 MiB that are usual there, is an error here and not SIGBUS later.
/// \return  empty, or why not.
std::string Sharing::populate_slots() {
  try {
    setup_.region.populate_slots(setup_.memory, options_.rank);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// The first refusal of any rank, on all ranks; empty if there is none.
std::string Sharing::agree(const std::string& said) {
  return rendezvous_.exchange(said, [this](const std::vector<std::string>& lines) {
    for (std::size_t rank = 0; rank < lines.size(); ++rank) {
      if (!lines[rank].empty())
        return "rank " + std::to_string(options_.name_of(static_cast<int>(rank))) + ": " + lines[rank];
    }
    return std::string();
  });
}

bool Sharing::share_memfd() {
  std::string trouble;
  if (creates()) trouble = open([] { return SharedMemory::create(); });
  const std::string fd = rendezvous_.exchange(
      {}, [&](const std::vector<std::string>&) { return trouble.empty() ? std::to_string(setup_.memory.fd()) : ""; });
  if (!creates() && fd.empty()) trouble = "rank 0 made no memory";
  if (!creates() && !fd.empty()) {
    trouble = creator_ == 0 ? "rank 0 is in another pid namespace"
                            : open([&] { return SharedMemory::open_of(creator_, std::stoi(fd)); });
  }
  return agree(trouble).empty();
}

void Sharing::share_named() {
  const std::string name = "/lrun-" + std::to_string(rendezvous_.identity());
  NamedFile file(name);
  std::string trouble;
  if (creates()) trouble = open([&] { return file.create(); });
  rendezvous_.exchange({}, [](const std::vector<std::string>&) { return std::string(); });
  if (!creates()) trouble = open([&] { return SharedMemory::open_named(name); });
  if (trouble.empty()) trouble = populate_slots();
  trouble = agree(trouble);
  if (!trouble.empty()) throw Error("the ranks of this host cannot share memory: " + trouble);
}

}  // namespace

ShmSetup meet_and_share(const GroupOptions& options) { return Sharing(options).run(); }

}  // namespace lrun::detail
