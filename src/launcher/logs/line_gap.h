#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lrun::launcher {

/// The lines that are left out while a console is full, and their number, which is printed in their place. Workers'
/// lines are left out only where all of them are in files, too; lrun's own only beyond a limit. A value.
class LineGap {
 public:
  /// \param limit_bytes  of lrun's own lines while the console is full
  explicit LineGap(std::size_t limit_bytes) : limit_(limit_bytes) {}

  /// Workers' lines may be left out: all of them are also in `place`.
  void allow(std::string place) { place_of_all_ = std::move(place); }
  /// Every line of workers counts from now on, whatever allow() says: some are nowhere else.
  void forbid() { forbidden_ = true; }
  [[nodiscard]] bool forbidden() const { return forbidden_; }
  [[nodiscard]] bool allowed() const { return place_of_all_ && !forbidden_; }

  /// A line was left out, and that was not printed yet. Until then all lines of workers are left out: there is
  /// one gap, not many.
  [[nodiscard]] bool is_open() const { return is_open_; }
  /// For a piece of a line while the console is full or the gap is open. \return it is left out.
  /// \param from_lrun  else from a worker \param may_skip  workers' lines may be left out on this console
  bool takes(std::string_view piece, bool from_lrun, bool may_skip) {
    if (from_lrun ? (own_bytes_ += piece.size()) <= limit_ : !may_skip) return false;
    is_open_ = true;
    (from_lrun ? own_lines_ : lines_) += static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
    return true;
  }
  /// The console is not full any more.
  void relieve() { own_bytes_ = 0; }
  /// Closes the gap. \return the lines that stand in its place.
  std::string close();

 private:
  std::size_t limit_;
  std::optional<std::string> place_of_all_;
  bool forbidden_ = false;
  bool is_open_ = false;
  std::uint64_t lines_ = 0;      ///< of workers, left out
  std::uint64_t own_lines_ = 0;  ///< of lrun, left out
  std::size_t own_bytes_ = 0;    ///< of lrun's own lines since the console is full
};

}  // namespace lrun::launcher
