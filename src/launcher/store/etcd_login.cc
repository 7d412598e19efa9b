#include "store/etcd_login.h"

#include "base/shortened.h"

namespace lrun::launcher {
namespace {

using LoginKind = EtcdLogin::Verdict::Kind;

constexpr std::size_t kMostOfError = 200;
constexpr const char* kTokenHint = "a proxy between lrun and etcd has to forward the header 'Authorization'";
constexpr const char* kUserHint = "set LRUN_ETCD_USER=NAME:PASSWORD on every node";
constexpr const char* kRightsHint =
    "give the user of LRUN_ETCD_USER permission to read and write below '--rdzv-conf etcd_prefix'";

/// A user or a role has changed since the token was given.
bool is_outdated(const EtcdAnswer& answer) {
  return answer.error.find("revision of auth store is old") != std::string::npos;
}

/// The connection was not logged in, or no longer is.
bool wants_token(const EtcdAnswer& answer) {
  return answer.code == kEtcdUnauthenticated || is_outdated(answer) ||
         answer.error.find("user name is empty") != std::string::npos;
}

}  // namespace

std::string etcd_error_text(const EtcdAnswer& answer, const std::string& who) {
  return who + " says '" + shortened(answer.error, kMostOfError) + "'";
}

EtcdLogin::Verdict EtcdLogin::take_token(const EtcdAnswer& answer) {
  // An etcd without users answers that a precondition fails: it needs no token.
  if (!answer.error.empty() && answer.code != kEtcdFailedPrecondition) {
    return {LoginKind::kRefuse, etcd_error_text(answer), kUserHint};
  }
  token_ = answer.token;
  is_fresh_ = true;
  return {LoginKind::kAgain};
}

EtcdLogin::Verdict EtcdLogin::judge(const EtcdAnswer& answer) {
  const bool was_fresh = std::exchange(is_fresh_, false);
  if (wants_token(answer)) {
    if (user_.empty()) return {LoginKind::kRefuse, "etcd requires a user", kUserHint};
    token_.reset();
    if (!was_fresh) return {LoginKind::kAgain};
    if (is_outdated(answer)) return {LoginKind::kFail, etcd_error_text(answer)};
    return {LoginKind::kRefuse, "etcd accepts the password of '" + user_ + "' and rejects the token that it gave",
            kTokenHint};
  }
  if (answer.code != kEtcdPermissionDenied) return {};
  return {LoginKind::kRefuse, etcd_error_text(answer), kRightsHint};
}

}  // namespace lrun::launcher
