#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace lrun::launcher {

/// What launchers of one job need to find each other: a table of keys that all of them see.
///
/// Every call blocks until the answer is there, at most until its deadline. Keys and values are bytes. Operations of
/// several clients on one key happen one after the other. Not for several threads at once.
///
/// A key that does not come in time is a value. Trouble with the store itself is an error of every call:
/// \throws std::system_error  ETIMEDOUT: the store did not answer before the deadline; ECONNRESET, EPIPE and others:
/// the
///                            connection broke; EPROTO: the answer makes no sense. The client is of no use afterwards.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  /// Done when the store has it, so that another client sees it at once.
  virtual void set(const std::string& key, const std::string& value, SteadyTime deadline) = 0;

  /// Waits for the key and gets its value; empty when it did not come before the deadline.
  virtual std::optional<std::string> get(const std::string& key, SteadyTime deadline) = 0;

  /// Waits until all keys exist; false when they did not before the deadline.
  virtual bool wait(const std::vector<std::string>& keys, SteadyTime deadline) = 0;

  /// Whether all keys exist now.
  virtual bool check(const std::vector<std::string>& keys, SteadyTime deadline) = 0;

  /// Adds to a counter, absent is 0, and returns the sum.
  virtual std::int64_t add(const std::string& key, std::int64_t amount, SteadyTime deadline) = 0;

  /// Stores `desired` if the key holds `expected`, or is absent and `expected` is empty. Returns what the key holds
  /// afterwards; for an absent key that was expected to have a value, `expected`. It was stored if, and only if, the
  /// answer is `desired` (as long as `desired` differs from `expected`).
  virtual std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired,
                                  SteadyTime deadline) = 0;

  /// Whether the key existed.
  virtual bool delete_key(const std::string& key, SteadyTime deadline) = 0;
};

}  // namespace lrun::launcher
