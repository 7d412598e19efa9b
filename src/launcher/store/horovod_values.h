#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "store/http_request.h"

namespace lrun::launcher {

/// The values that ranks of Horovod publish before they connect, by scope and key. They put, get and delete them over
/// HTTP. A value; no I/O.
///
/// A scope is one rendezvous: 'global' of all ranks, 'local_<host>', 'cross_<local rank>', and the same with a suffix
/// for each set of processes that a program makes. A rank puts its addresses under its number and its host's name under
/// 'rank_<number>', asks for those of the others until they are there, connects to all of them, and then deletes its
/// number. That deletes everything the rank has put, so that the next rendezvous in this scope finds no old values.
class HorovodValues {
 public:
  /// Enough for 2,500 ranks.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30U;

  /// \param most_bytes  of all keys and values together
  explicit HorovodValues(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  /// Executes a request. \return the answer in HTTP/1.1; the connection is closed after it.
  std::string answer(HttpRequest request);

  /// Ranks that have begun the rendezvous of all ranks since clear().
  [[nodiscard]] const std::set<int>& ranks_seen() const { return ranks_seen_; }
  [[nodiscard]] bool empty() const { return scopes_.empty(); }

  void clear();

 private:
  using Scope = std::map<std::string, std::string, std::less<>>;
  struct Place {
    std::string scope;
    std::string key;
  };

  std::string get(const Place& place) const;
  std::string put(const Place& place, std::string value);
  std::string finish(const Place& place);
  void erase(Scope& scope, const std::string& key);
  void note_rank(const Place& place);

  std::map<std::string, Scope, std::less<>> scopes_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::set<int> ranks_seen_;
};

}  // namespace lrun::launcher
