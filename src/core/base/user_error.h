#pragma once

#include <stdexcept>
#include <string>

namespace lrun::inline core {

/// Something the user typed or set that lrun cannot act on; main() renders it and exits 125.
///
/// what: lower case, no full stop, the user's text in single quotes.
/// hint: what to type instead; never empty.
/// Thrown only by cli, cluster and plan, before anything is started.
class UserError : public std::runtime_error {
 public:
  UserError(const std::string& what, std::string hint);

  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

 private:
  std::string hint_;
};

}  // namespace lrun::inline core
