// In: rounds of the job, and news of the copier. Out: its orders, notes for people, and when workers may start.
// run_node() makes one in a job of several nodes.
#include "run/memory_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/bytes_text.h"
#include "base/nearest.h"

namespace lrun::launcher {
namespace {

/// The start of the workers does not wait for that of the copier.
constexpr Duration kStartDelay(10);
/// One that is killed is started again, at most so many times; not at once, since it may be the end of all processes.
constexpr int kMostStarts = 4;
constexpr Duration kRestartDelay(1000);
/// The copier gives a silent node up long before.
constexpr Duration kFetchLimit(600'000);

}  // namespace

MemoryCopies::MemoryCopies(EventLoop& loop, CopierProcess& copier, MessageSink& sink)
    : loop_(loop), copier_(copier), sink_(sink) {}

void MemoryCopies::enter(const Membership& membership) {
  order_ = {membership.round, membership.self};
  limit_.cancel();
  if (has_given_up()) return;
  copier_.tell(order_);
  const bool is_hurried = !order_.self.inherits.empty();
  if (starts_ == 0) start_ = loop_.after(is_hurried ? Duration::zero() : kStartDelay, [this] { start(); });
  if (!is_hurried) return;
  limit_ = loop_.after(kFetchLimit, [this] {
    sink_.warn(fmt::format("files in memory of a lost node have not come for {}: the workers start without them",
                           format_duration(kFetchLimit)));
    finish();
    copier_.tell(order_);  // none come any more
  });
}

bool MemoryCopies::has_given_up() const { return starts_ >= kMostStarts; }

void MemoryCopies::start() {
  const bool is_first = starts_++ == 0;
  try {
    copier_.start();
    news_ = loop_.on_readable(copier_.channel(), [this] { read(); });
    if (!is_first) copier_.tell(order_);
  } catch (const std::system_error& error) {
    starts_ = kMostStarts;
    sink_.warn(fmt::format("files in memory are not copied to another node: {}", error.what()));
    finish();
  }
}

void MemoryCopies::copier_ended() {
  news_.cancel();
  keeps_.clear();
  if (!has_given_up()) {
    start_ = loop_.after(kRestartDelay, [this] { start(); });
    return;
  }
  sink_.warn(
      "files in memory are not copied between nodes any more: the process that does it was killed several times");
  finish();
}

void MemoryCopies::read() {
  bool has_ended = false;
  const std::optional<CopierNews> news = copier_.next_news(has_ended);
  if (has_ended) return copier_ended();
  if (!news) return;
  if (news->keeps) keeps_ = *news->keeps;
  if (!news->refusal.empty()) tell_refusal(news->refusal);
  if (!news->fetched || news->round != order_.round) return;
  tell_fetched(*news->fetched);
  finish();
}

void MemoryCopies::tell_refusal(const std::string& why) {
  sink_.warn(fmt::format("the neighbour at {} has no copies of the files in memory of this node: {}",
                         order_.self.neighbour, why));
  sink_.hint(
      "when this node is lost, the one that replaces it begins without them; '--memory-dir' says how much is kept");
}

void MemoryCopies::tell_fetched(const std::vector<FetchedFiles>& all) {
  for (const FetchedFiles& fetched : all) {
    if (!fetched.why_not.empty()) {
      sink_.warn(fmt::format("the files in memory of the lost node rank {} are lost, too: {}", fetched.node_rank,
                             fetched.why_not));
    } else if (fetched.files > 0) {
      const std::chrono::nanoseconds saved(fetched.newest_ns);
      const auto age = std::chrono::system_clock::now().time_since_epoch() - saved;
      const Duration seconds = std::max(Duration::zero(), Duration(std::chrono::floor<std::chrono::seconds>(age)));
      sink_.note(fmt::format("the files in memory of the lost node rank {} are here again: {}, {}, saved {} ago",
                             fetched.node_rank, counted(fetched.files, "file"), bytes_text(fetched.bytes),
                             format_duration(seconds)));
    }
  }
}

void MemoryCopies::finish() {
  limit_.cancel();
  order_.self.inherits.clear();  // a copier that is started again must not get them once more
  if (done_) std::exchange(done_, nullptr)();
}

}  // namespace lrun::launcher
