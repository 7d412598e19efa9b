// In: a node's folder in memory, and orders of its launcher. Out: a child process that copies files between nodes. Made
// by run_in_job().
#include "copies/copier.h"

#include <sys/socket.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "copies/copy_fetcher.h"
#include "copies/copy_keeper.h"
#include "copies/copy_sender.h"
#include "rendezvous/handshake.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 10U;  // of an order, or of news

enum class Received { kMessage, kNothing, kEnd };

Received receive(int channel, std::string& message) {
  message.resize(kMostBytes);
  const ssize_t count = ::recv(channel, message.data(), message.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Received::kNothing;
  if (count <= 0) return Received::kEnd;
  message.resize(static_cast<std::size_t>(count));
  return Received::kMessage;
}

/// A launcher that does not read is stopped, and so is this node's part in the job.
void send(int channel, const std::string& message) {
  (void)::send(channel, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// The child's side.
class Copier {
 public:
  Copier(int listener, int channel, const CopierProcess::Facts& facts, const std::string& key)
      : channel_(channel),
        sender_(loop_, {facts.outer, facts.folder, facts.token, facts.secret},
                [this](const std::string& why) { say({.refusal = why}); }),
        keeper_(loop_, listener, {facts.outer, facts.most_bytes, key + facts.secret},
                [this](const std::vector<FileOwner>& owners) { say({.keeps = owners}); }),
        fetcher_(loop_, {facts.outer, facts.folder, facts.secret}) {
    orders_ = loop_.on_readable(channel_, [this] { read(); });
  }

  void run() { loop_.run(); }

 private:
  void say(CopierNews news) const {
    news.round = round_;
    send(channel_, to_json(news));
  }

  void read() {
    std::string message;
    const Received received = receive(channel_, message);
    if (received == Received::kEnd) return loop_.stop();
    if (received == Received::kNothing) return;
    const std::optional<CopierOrder> order = copier_order_from_json(message);
    if (!order) return;
    round_ = order->round;
    const Member& self = order->self;
    keeper_.enter(self.keeps_for);
    sender_.enter({self.neighbour, self.neighbour_port, self.neighbour_key});
    // Files of the round before must not come any more.
    fetcher_.fetch(self.inherits, [this](const std::vector<FetchedFiles>& all) { say({.fetched = all}); });
  }

  EventLoop loop_;
  int channel_;
  int round_ = 0;
  CopySender sender_;
  CopyKeeper keeper_;
  CopyFetcher fetcher_;
  EventLoop::Watch orders_;
};

/// Of a copier that was killed.
void remove_copies_in(const std::string& outer) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(outer, ignored)) {
    if (entry.path().filename().native().starts_with(kCopyPrefix)) std::filesystem::remove_all(entry.path(), ignored);
  }
}

int run_copier(int listener, int channel, const CopierProcess::Facts& facts, const std::string& key) {
  remove_copies_in(facts.outer);
  Copier(listener, channel, facts, key).run();
  return 0;
}

}  // namespace

CopierProcess::CopierProcess(Facts facts) : facts_(std::move(facts)), key_(random_secret()) {
  listener_ = open_listening_socket(facts_.reach, 0, facts_.address);
  port_ = port_of_socket(listener_.get());
  open_channel();
}

void CopierProcess::open_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  channel_ = Fd(ends[0]);
  theirs_ = Fd(ends[1]);
}

void CopierProcess::start() {
  if (child_) open_channel();
  child_.emplace(
      ForkedHelper::Request{.function = [this] { return run_copier(listener_.get(), theirs_.get(), facts_, key_); },
                            .descriptors = {listener_.get(), theirs_.get()},
                            .name = kCopierName,
                            .of = facts_.of});
  theirs_.reset();
}

void CopierProcess::tell(const CopierOrder& order) const { send(channel_.get(), to_json(order)); }

std::optional<CopierNews> CopierProcess::next_news(bool& has_ended) const {
  std::string message;
  const Received received = receive(channel_.get(), message);
  has_ended = received == Received::kEnd;
  return received == Received::kMessage ? copier_news_from_json(message) : std::nullopt;
}

}  // namespace lrun::launcher
