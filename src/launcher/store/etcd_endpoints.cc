#include "store/etcd_endpoints.h"

namespace lrun::launcher {
namespace {

/// How often each endpoint may end a connection without a word before one has answered. An etcd that is being started
/// refuses the connection instead; a proxy before one that is started again does not.
constexpr std::size_t kMostWordless = 10;

}  // namespace

void EtcdEndpoints::answered() {
  failed_ = mistakes_ = wordless_ = 0;
  has_answered_ = true;  // from now on an etcd is there, and may be restarting
}

bool EtcdEndpoints::failed(Failure failure, SteadyTime now) {
  if (failure != Failure::kMistake) mistakes_ = 0;
  if (failure != Failure::kRefused) refused_since_.reset();
  bool goes_on = true;
  switch (failure) {
    case Failure::kPassing:
      break;
    case Failure::kRefused:
      refused_since_ = refused_since_.value_or(now);
      goes_on = has_answered_ || start_ == Duration::zero() || now < *refused_since_ + start_;
      break;
    case Failure::kWordless:
      goes_on = has_answered_ || ++wordless_ < kMostWordless * endpoints_.size();
      break;
    case Failure::kMistake:
      goes_on = ++mistakes_ < endpoints_.size();  // one wrong endpoint of several is no reason to give up
      break;
  }
  if (!goes_on) mistakes_ = wordless_ = 0;
  return goes_on;
}

bool EtcdEndpoints::next() {
  current_ = (current_ + 1) % endpoints_.size();
  return ++failed_ % endpoints_.size() == 0;
}

}  // namespace lrun::launcher
