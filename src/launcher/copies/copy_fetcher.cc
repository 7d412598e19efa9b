// In: which nodes have copies of a lost node's files. Out: these files in this node's folder. Owned by Copier.
#include "copies/copy_fetcher.h"

#include <system_error>
#include <utility>

#include "base/duration.h"

namespace lrun::launcher {
namespace {

constexpr Duration kLongestSilence(10'000);

}  // namespace

void CopyFetcher::fetch(std::vector<LostFiles> lost, std::function<void(const std::vector<FetchedFiles>& all)> done) {
  connector_.cancel();
  connection_.reset();
  files_.reset();
  silence_.cancel();
  turn_.cancel();
  results_.clear();
  lost_ = std::move(lost);
  done_ = std::move(done);
  next();
}

void CopyFetcher::next() {
  if (results_.size() == lost_.size()) {
    turn_ = loop_.after(Duration::zero(), [this] { std::exchange(done_, nullptr)(results_); });
    return;
  }
  const LostFiles& lost = lost_[results_.size()];
  files_ =
      std::make_unique<ReceivedFiles>(facts_.folder, facts_.outer + "/fetched.new", ReceivedFiles::Existing::kStays);
  connector_.connect({.host = lost.address, .port = static_cast<std::uint16_t>(lost.port), .limit = kLongestSilence},
                     [this](SocketConnector::Result result) { connected(std::move(result)); });
}

void CopyFetcher::connected(SocketConnector::Result result) {
  if (!result.socket) return finish(result.trouble);
  wait();
  connection_ = std::make_unique<CopyConnection>(
      loop_, std::move(result.socket), Handshake::Side::kLauncher, lost_[results_.size()].key + facts_.secret,
      CopyConnection::Events{.ready =
                                 [this] {
                                   connection_->send(
                                       {.kind = CopyMessage::Kind::kFetch, .text = lost_[results_.size()].owner.token});
                                 },
                             .received = [this](const CopyItem& item) { received(item); },
                             .sent = [] {},
                             .broken = [this](const std::string& why) { finish(why); }});
}

void CopyFetcher::wait() {
  silence_ = loop_.after(kLongestSilence, [this] { finish("nothing came for " + format_duration(kLongestSilence)); });
}

void CopyFetcher::received(const CopyItem& item) {
  if (!files_) return;
  wait();
  if (const auto* const content = std::get_if<CopyContent>(&item)) return files_->add(content->bytes);
  if (const auto* const end = std::get_if<CopyFileEnd>(&item)) return files_->end_file(end->is_valid);
  const auto& message = std::get<CopyMessage>(item);
  switch (message.kind) {
    case CopyMessage::Kind::kFile:
      return files_->begin_file(message);
    case CopyMessage::Kind::kCommit: {
      const int error = files_->commit(false);
      if (error == 0) connection_->send({.kind = CopyMessage::Kind::kKept});
      return finish(error != 0 ? std::generic_category().message(error) : "");
    }
    case CopyMessage::Kind::kRefused:
      return finish(message.text);
    default:
      return;
  }
}

/// Goes on with the next one, when the connection is not at work any more.
void CopyFetcher::finish(const std::string& why_not) {
  if (!files_) return;
  files_->discard();
  results_.push_back({.node_rank = lost_[results_.size()].owner.node_rank,
                      .files = files_->count(),
                      .bytes = files_->bytes(),
                      .newest_ns = files_->newest_ns(),
                      .why_not = why_not});
  files_.reset();
  silence_.cancel();
  turn_ = loop_.after(Duration::zero(), [this] {
    connection_.reset();
    next();
  });
}

}  // namespace lrun::launcher
