// In: changes of this node's files in memory. Out: the files, to the copier of the neighbour. Owned by Copier.
#include "copies/copy_sender.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace lrun::launcher {
namespace {

/// A save is several changes.
constexpr Duration kDelay(10);
/// Between looks at files that programs are writing, doubled each time: no folder changes when they are closed.
constexpr Duration kFirstUntilClosed(250);
constexpr Duration kLongestUntilClosed(16'000);
/// A look at many files takes 5 % of one processor at most.
constexpr int kTimesOfLook = 20;
constexpr std::size_t kMostFolders = 256;      // that are watched; each takes a descriptor
constexpr std::size_t kMostFilesAtOnce = 512;  // each takes a descriptor
constexpr Duration kConnectLimit(5000);
constexpr Duration kFirstPause(500);
constexpr Duration kLongestPause(10'000);

/// Bytes a second: gradients of the workers share the network, and a tenth of a second matters to nobody who loses a
/// node. 40 % of 10 Gb/s.
constexpr unsigned kMostBytesASecond = 500'000'000;

}  // namespace

CopySender::CopySender(EventLoop& loop, Facts facts, std::function<void(const std::string& why)> warn)
    : loop_(loop),
      facts_(std::move(facts)),
      warn_(std::move(warn)),
      watch_(loop, kMostFolders, [this] { look_soon(); }),
      connector_(loop),
      delay_(kDelay),
      until_closed_(kFirstUntilClosed),
      pause_(kFirstPause) {}

void CopySender::look_soon() {
  until_closed_ = kFirstUntilClosed;
  if (!look_.armed()) look_ = loop_.after(delay_, [this] { look(); });
}

void CopySender::enter(Neighbour neighbour) {
  if (neighbour == neighbour_) return;
  if (connection_ && connection_->is_ready() && !connection_->is_sending_files()) {
    connection_->send({.kind = CopyMessage::Kind::kDrop});  // else it keeps them until the next round
  }
  connection_.reset();
  neighbour_ = std::move(neighbour);
  was_there_ = false;
  pause_ = kFirstPause;
  again_.cancel();
  connector_.cancel();
  if (neighbour_.port != 0) connect();
}

void CopySender::connect() {
  connector_.connect(
      {.host = neighbour_.address, .port = static_cast<std::uint16_t>(neighbour_.port), .limit = kConnectLimit},
      [this](SocketConnector::Result result) { connected(std::move(result)); });
}

void CopySender::connected(SocketConnector::Result result) {
  if (!result.socket) return try_again(result.trouble);
  ::setsockopt(result.socket.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &kMostBytesASecond, sizeof kMostBytesASecond);
  connection_ = std::make_unique<CopyConnection>(
      loop_, std::move(result.socket), Handshake::Side::kLauncher, neighbour_.key + facts_.secret,
      CopyConnection::Events{.ready =
                                 [this] {
                                   pause_ = kFirstPause;
                                   was_there_ = true;
                                   forget();
                                   connection_->send({.kind = CopyMessage::Kind::kOwner, .text = facts_.token});
                                   look_soon();
                                 },
                             .received = [this](const CopyItem& item) { received(item); },
                             .sent = [this] { sent(); },
                             .broken =
                                 [this](const std::string& why) {
                                   connection_.reset();
                                   try_again(why);
                                 }});
}

/// The neighbour has nothing that counts.
void CopySender::forget() {
  kept_.clear();
  knows_all_ = has_uncommitted_ = false;
  is_late_ = is_late_ && connection_->is_sending_files();
}

void CopySender::received(const CopyItem& item) {
  const auto* const message = std::get_if<CopyMessage>(&item);
  if (message == nullptr || message->kind != CopyMessage::Kind::kRefused) return;
  forget();  // the next save may be smaller
  if (message->text.empty()) return look_soon();
  warn(message->text);
}

/// Only where a program has saved anything.
void CopySender::warn(const std::string& why) {
  if (warn_ && !saved_files(facts_.folder).empty()) std::exchange(warn_, nullptr)(why);
}

void CopySender::try_again(const std::string& why) {
  // A neighbour that was there and is lost is told of by others.
  if (pause_ == kLongestPause && !was_there_) warn(why);
  again_ = loop_.after(pause_, [this] { connect(); });
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void CopySender::look() {
  if (!connection_ || !connection_->is_ready()) return;
  if (connection_->is_sending_files()) {
    is_late_ = true;
    return;
  }
  const SteadyTime begin = steady_now();
  watch_.clear();
  if (!watch_.add(facts_.outer.c_str())) warn("this kernel tells of no changes of folders (fs.dir-notify-enable)");
  // Programs may remove the folder and make it again.
  const SavedFiles now = saved_files(facts_.folder, [this](const char* folder) { watch_.add(folder); });
  send_changes(now);
  const auto took = std::chrono::duration_cast<Duration>(steady_now() - begin);
  delay_ = std::max(kDelay, kTimesOfLook * took);
}

void CopySender::send_changes(const SavedFiles& now) {
  std::vector<std::string> gone;
  for (const auto& [path, stamp] : kept_) {
    if (!now.contains(path)) gone.push_back(path);
  }
  for (const std::string& path : gone) kept_.erase(path);
  std::vector<OpenFile> changed;
  bool are_closed = true;
  for (const auto& [path, stamp] : now) {
    const auto known = kept_.find(path);
    if (known != kept_.end() && known->second == stamp) continue;
    if (changed.size() == kMostFilesAtOnce) {
      is_late_ = true;
      break;
    }
    OpenFile file = open_complete(facts_.folder, path);
    are_closed = are_closed && file.fd;
    if (!file.fd) continue;
    kept_[path] = file.stamp;
    changed.push_back(std::move(file));
  }
  if (!are_closed) {
    later_look_ = loop_.after(until_closed_, [this] { look(); });
    until_closed_ = std::min(2 * until_closed_, kLongestUntilClosed);
  }
  if (changed.empty() && gone.empty() && knows_all_ && !has_uncommitted_) return;
  using Commit = FileStream::Commit;
  const Commit commit = is_late_ ? Commit::kNone : knows_all_ ? Commit::kChanges : Commit::kAllFiles;
  knows_all_ = knows_all_ || commit == Commit::kAllFiles;
  has_uncommitted_ = commit == Commit::kNone;
  connection_->send_files(FileStream(std::move(changed), std::move(gone), commit));
}

void CopySender::sent() {
  for (const std::string& path : connection_->changed()) kept_.erase(path);
  if (std::exchange(is_late_, false) || !connection_->changed().empty()) look_soon();
}

}  // namespace lrun::launcher
