#pragma once

#include <optional>
#include <string>
#include <utility>

#include "store/etcd_message.h"

namespace lrun::launcher {

/// The name under which an etcd is asked, where it wants one: a token that it gives for a user and a password, and that
/// goes with every request. Pure; a value.
class EtcdLogin {
 public:
  struct Verdict {
    enum class Kind {
      kAnswer,  ///< the answer counts
      kAgain,   ///< the same request again, with another token
      kFail,    ///< this endpoint is of no use now: `why`
      kRefuse,  ///< none is of use: `why` and `hint`
    };
    Kind kind = Kind::kAnswer;
    std::string why = {};
    std::string hint = {};

    bool operator==(const Verdict&) const = default;
  };

  /// \param user  empty: there is no login
  EtcdLogin(std::string user, std::string password) : user_(std::move(user)), password_(std::move(password)) {}

  /// The next request has to be that for a token.
  [[nodiscard]] bool is_due() const { return !user_.empty() && !token_; }
  [[nodiscard]] EtcdRequest request() const { return etcd_authenticate(user_, password_); }
  /// For the header of a request; empty: none.
  [[nodiscard]] std::string token() const { return token_.value_or(std::string()); }

  /// To the request for a token.
  Verdict take_token(const EtcdAnswer& answer);
  /// To any other request.
  Verdict judge(const EtcdAnswer& answer);
  /// The endpoint has failed: an etcd that begins anew may have forgotten the token.
  void forget_fresh() { is_fresh_ = false; }

 private:
  std::string user_;
  std::string password_;
  std::optional<std::string> token_;  ///< empty text: etcd has no users
  bool is_fresh_ = false;             ///< the last answer gave it
};

/// The error of etcd, as a clause: 'etcd says '…''.
std::string etcd_error_text(const EtcdAnswer& answer, const std::string& who = "etcd");

}  // namespace lrun::launcher
