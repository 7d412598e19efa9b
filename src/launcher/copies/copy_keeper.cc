// In: connections of other nodes' copiers. Out: copies of their files in a folder here, and these files again for the
// nodes that ask for them. Owned by Copier.
#include "copies/copy_keeper.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/bytes_text.h"
#include "copies/memory_limit.h"
#include "copies/saved_files.h"

namespace lrun::launcher {
namespace {

using Kind = CopyMessage::Kind;

constexpr std::size_t kMostClients = 2 * Member::kMostInherited;
constexpr Duration kToSayWhat(10'000);
constexpr Duration kWithoutDescriptors(1000);

std::vector<FileOwner>::const_iterator find_owner(const std::vector<FileOwner>& owners, const std::string& token) {
  return std::find_if(owners.begin(), owners.end(), [&](const FileOwner& owner) { return owner.token == token; });
}

std::string too_large(std::uint64_t most) {
  return fmt::format("it keeps {} of other nodes' files at most", bytes_text(most));
}

}  // namespace

CopyKeeper::CopyKeeper(EventLoop& loop, int listener, Facts facts,
                       std::function<void(const std::vector<FileOwner>& owners)> changed)
    : loop_(loop), listener_(listener), facts_(std::move(facts)), changed_(std::move(changed)) {
  listen();
}

void CopyKeeper::listen() {
  acceptable_ = loop_.on_readable(listener_, [this] { accept(); });
}

void CopyKeeper::enter(const std::vector<FileOwner>& owners) {
  std::vector<std::string> left;
  for (auto& [token, kept] : kept_) {
    const auto owner = find_owner(owners, token);
    const bool was_ours = std::exchange(kept.is_ours, owner != owners.end());
    if (kept.is_ours) kept.node_rank = owner->node_rank;
    if (!was_ours && !kept.is_ours) left.push_back(token);
  }
  for (const std::string& token : left) {
    const std::uint64_t client = kept_.at(token).client;
    drop(token);
    close(client);  // should it be needed after all, it connects again, and sends all
  }
  for (const FileOwner& owner : owners) {
    Kept& kept = kept_[owner.token];
    kept.node_rank = owner.node_rank;
    kept.is_ours = true;
  }
  report();
}

void CopyKeeper::accept() {
  Fd socket(::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket && (errno == EMFILE || errno == ENFILE)) {
    acceptable_.cancel();
    pause_ = loop_.after(kWithoutDescriptors, [this] { listen(); });
  }
  if (!socket || clients_.size() >= kMostClients) return;
  const std::uint64_t id = ++last_id_;
  Client& client = clients_[id];
  client.limit = loop_.after(kToSayWhat, [this, id] { close(id); });
  client.connection = std::make_unique<CopyConnection>(
      loop_, std::move(socket), Handshake::Side::kServer, facts_.secret,
      CopyConnection::Events{.ready = [] {},
                             .received = [this, id](const CopyItem& item) { received(id, item); },
                             .sent =
                                 [this, id] {
                                   Client& giving = clients_.at(id);
                                   if (!giving.left.empty()) give_some(giving);
                                 },
                             .broken = [this, id](const std::string&) { close(id); }});
}

/// Those that this client sends; null: it sends none.
CopyKeeper::Kept* CopyKeeper::files_of(std::uint64_t id, const Client& client) {
  const auto found = client.owner.empty() ? kept_.end() : kept_.find(client.owner);
  return found != kept_.end() && found->second.client == id ? &found->second : nullptr;
}

void CopyKeeper::received(std::uint64_t id, const CopyItem& item) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  if (const auto* const message = std::get_if<CopyMessage>(&item)) return take(id, *message);
  Kept* const kept = files_of(id, found->second);
  if (kept == nullptr || !found->second.refusal.empty()) return;
  if (const auto* const content = std::get_if<CopyContent>(&item)) return kept->files->add(content->bytes);
  kept->files->end_file(std::get<CopyFileEnd>(item).is_valid);
}

void CopyKeeper::take(std::uint64_t id, const CopyMessage& message) {
  Client& client = clients_.at(id);
  client.limit.cancel();
  if (message.kind == Kind::kOwner) return begin_owner(id, message);
  if (message.kind == Kind::kFetch) return give(client, message.text);
  if (message.kind == Kind::kKept) return taken(client.wants);
  Kept* const kept = files_of(id, client);
  if (kept == nullptr) return;
  switch (message.kind) {
    case Kind::kFile:
      return begin_file(client, *kept, message);
    case Kind::kGone:
      return kept->files->gone(message.text);
    case Kind::kCommit:
      return commit(client, *kept, message.number != 0);
    case Kind::kDrop:
      return drop(client.owner);
    default:
      return;
  }
}

/// A node that connects again sends all of its files once more: until then the old ones count. It may be here before
/// the round in which this node is its neighbour begins here.
void CopyKeeper::begin_owner(std::uint64_t id, const CopyMessage& message) {
  const std::string& token = message.text;
  if (!is_sound(FileOwner{token, 0})) return;
  Client& client = clients_.at(id);
  if (kept_.size() >= 2 * Member::kMostInherited && !kept_.contains(token)) {
    return client.connection->send({.kind = Kind::kRefused, .text = "it keeps copies for too many nodes already"});
  }
  client.owner = token;
  Kept& kept = kept_[token];
  if (!kept.files) {
    const std::string folder = fmt::format("{}/{}{}", facts_.outer, kCopyPrefix, id);
    kept.files = std::make_unique<ReceivedFiles>(folder, folder + ".new", ReceivedFiles::Existing::kReplaced);
  }
  kept.files->discard();
  const std::uint64_t before = std::exchange(kept.client, id);
  kept.was_taken = false;
  if (before != id) close(before);
}

/// The bytes of the copies once they have come; while they come, those of before are there, too.
void CopyKeeper::begin_file(Client& client, Kept& kept, const CopyMessage& message) {
  if (client.most_bytes == 0) client.most_bytes = most_bytes();
  const std::uint64_t taken = bytes_but(kept) + kept.files->staged_bytes();
  const bool is_too_large = message.number > client.most_bytes - std::min(client.most_bytes, taken);
  if (client.refusal.empty() && is_too_large) refuse(client, kept, too_large(client.most_bytes));
  if (++client.files > kMostSavedFiles) {
    refuse(client, kept, fmt::format("it keeps {} files at most", kMostSavedFiles));
  }
  if (client.refusal.empty()) kept.files->begin_file(message);
}

/// The files of before go, too: nobody is to go on from a state that is older than the last one.
void CopyKeeper::refuse(Client& client, Kept& kept, std::string why) {
  client.refusal = std::move(why);
  kept.files->remove();
  kept.is_complete = false;
}

void CopyKeeper::commit(Client& client, Kept& kept, bool is_all) {
  client.files = 0;
  const std::uint64_t most = std::exchange(client.most_bytes, 0);
  if (client.needs_all && !is_all) {
    kept.files->discard();
    return client.connection->send({.kind = Kind::kRefused});
  }
  const bool is_too_large = most > 0 && bytes_but(kept) + kept.files->bytes_after(is_all) > most;
  if (client.refusal.empty() && is_too_large) refuse(client, kept, too_large(most));
  if (client.refusal.empty()) {
    const int error = kept.files->commit(is_all);
    if (error != 0) refuse(client, kept, std::generic_category().message(error));
    kept.is_complete = error == 0;
  }
  const std::string refusal = std::exchange(client.refusal, {});
  client.needs_all = !refusal.empty();
  client.connection->send({.kind = refusal.empty() ? Kind::kKept : Kind::kRefused, .text = refusal});
  report();
}

void CopyKeeper::give(Client& client, const std::string& token) {
  const auto found = kept_.find(token);
  if (found == kept_.end() || !found->second.is_complete || client.connection->is_sending_files()) {
    return client.connection->send({.kind = Kind::kRefused, .text = "it has no copies"});
  }
  client.wants = token;
  for (const auto& [path, stamp] : saved_files(found->second.files->folder())) client.left.push_back(path);
  give_some(client);
}

/// Each open file takes a descriptor.
void CopyKeeper::give_some(Client& client) {
  constexpr std::size_t kMostAtOnce = 256;
  const auto found = kept_.find(client.wants);
  if (found == kept_.end()) return client.connection->send({.kind = Kind::kRefused, .text = "its copies are gone"});
  std::vector<OpenFile> files;
  while (!client.left.empty() && files.size() < kMostAtOnce) {
    OpenFile file = open_complete(found->second.files->folder(), client.left.back());
    if (!file.fd) {
      const std::string why = std::generic_category().message(errno);
      return client.connection->send({.kind = Kind::kRefused, .text = fmt::format("'{}': {}", file.path, why)});
    }
    client.left.pop_back();
    files.push_back(std::move(file));
  }
  using Commit = FileStream::Commit;
  const Commit commit = client.left.empty() ? Commit::kAllFiles : Commit::kNone;
  client.connection->send_files(FileStream(std::move(files), {}, commit));
}

void CopyKeeper::taken(const std::string& token) {
  const auto found = kept_.find(token);
  if (found == kept_.end()) return;
  found->second.was_taken = true;
  report();
}

void CopyKeeper::drop(const std::string& token) {
  const auto found = kept_.find(token);
  if (found == kept_.end()) return;
  const auto client = clients_.find(found->second.client);
  if (client != clients_.end()) client->second.owner.clear();
  if (found->second.files) found->second.files->remove();
  kept_.erase(found);
  report();
}

void CopyKeeper::close(std::uint64_t id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  if (Kept* const kept = files_of(id, found->second); kept != nullptr) {
    kept->files->discard();
    kept->client = 0;
  }
  clients_.erase(found);
  report();
}

void CopyKeeper::report() {
  std::vector<FileOwner> owners;
  for (const auto& [token, kept] : kept_) {
    const bool is_offered = kept.is_ours && kept.is_complete && !kept.was_taken && kept.files->count() > 0;
    if (is_offered && owners.size() < Member::kMostInherited) owners.push_back({token, kept.node_rank});
  }
  if (owners == reported_) return;
  reported_ = owners;
  changed_(owners);
}

std::uint64_t CopyKeeper::bytes_but(const Kept& one) const {
  std::uint64_t bytes = 0;
  for (const auto& [token, kept] : kept_) {
    if (&kept != &one && kept.files) bytes += kept.files->bytes() + kept.files->staged_bytes();
  }
  return bytes;
}

std::uint64_t CopyKeeper::most_bytes() const {
  if (facts_.most_bytes) return *facts_.most_bytes;
  std::uint64_t bytes = 0;
  for (const auto& [token, kept] : kept_) bytes += kept.files ? kept.files->bytes() : 0;
  return default_memory_limit(facts_.outer, bytes);
}

}  // namespace lrun::launcher
