#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// One request to the JSON gateway of an etcd v3: a POST of `body` to `path`.
struct EtcdRequest {
  std::string path;
  std::string body;

  bool operator==(const EtcdRequest&) const = default;
};

/// A key as it is at the time of an answer.
struct EtcdEntry {
  std::string value;
  std::int64_t create_revision = 0;  ///< larger than that of every earlier key, this one's deleted forerunners included

  bool operator==(const EtcdEntry&) const = default;
};

/// An answer of etcd to any of the requests below. Fields that a kind of answer does not have keep these values.
struct EtcdAnswer {
  std::string error;        ///< etcd's text; empty: there was no error
  int code = 0;             ///< of the error, as gRPC numbers them
  bool has_header = false;  ///< as every answer of etcd but an error: a key that is not in it does not exist
  std::string token;
  std::int64_t lease = 0;
  std::int64_t seconds = 0;                            ///< that the lease lives; 0: it is gone
  bool succeeded = false;                              ///< the comparison of a transaction held
  std::vector<std::optional<EtcdEntry>> entries = {};  ///< one for each get, in order; empty: there is no such key

  bool operator==(const EtcdAnswer&) const = default;
};

/// The codes of errors that a launcher handles.
inline constexpr int kEtcdCancelled = 1;
inline constexpr int kEtcdUnknown = 2;
inline constexpr int kEtcdInvalidArgument = 3;
inline constexpr int kEtcdDeadlineExceeded = 4;
inline constexpr int kEtcdNotFound = 5;
inline constexpr int kEtcdPermissionDenied = 7;
inline constexpr int kEtcdResourceExhausted = 8;
inline constexpr int kEtcdFailedPrecondition = 9;
inline constexpr int kEtcdAborted = 10;
inline constexpr int kEtcdInternal = 13;
inline constexpr int kEtcdUnavailable = 14;
inline constexpr int kEtcdUnauthenticated = 16;

EtcdRequest etcd_authenticate(const std::string& user, const std::string& password);
/// A lease for `seconds`; etcd may give it a longer life.
EtcdRequest etcd_grant(std::int64_t seconds);
EtcdRequest etcd_keep_alive(std::int64_t lease);
/// Deletes the keys of the lease, too.
EtcdRequest etcd_revoke(std::int64_t lease);
EtcdRequest etcd_get(const std::string& key);

/// One step of a transaction.
struct EtcdStep {
  enum class Kind { kPut, kGet, kDelete };

  Kind kind = Kind::kGet;
  std::string key;
  std::string value = {};  ///< of a put
  std::int64_t lease = 0;  ///< of a put; 0: the key stays
};

/// `then` where `key` was created at revision `created` (0: is not there), else `otherwise`; all at once.
EtcdRequest etcd_transaction(const std::string& key, std::int64_t created, const std::vector<EtcdStep>& then,
                             const std::vector<EtcdStep>& otherwise);

/// Reads an answer, of whatever kind. Empty: it is none of etcd's.
std::optional<EtcdAnswer> etcd_answer_from_json(std::string_view body);

}  // namespace lrun::launcher
