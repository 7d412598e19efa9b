#pragma once

#include <string>
#include <vector>

#include "base/user_error.h"

namespace lrun::launcher {

/// The error about one option or setting that lrun does not have. Those who type several are told all at once.
struct UnknownWord : UserError {
  /// \param before  'unknown option', 'lrun.toml:2: unknown setting'
  /// \param after   ' of 'lrun logs''; may be empty
  UnknownWord(std::string before, std::string word, std::string after, std::string hint);

  std::string before;
  std::string word;
  std::string after;
};

/// The error about all of them, of which each alone would have its own. At least one.
UserError error_about(const std::vector<UnknownWord>& unknown);

/// Calls `read_next` until it says that nothing is left. \throws UserError  the first error, and where it is an unknown
/// word, with those behind it up to another error, which may come from the first.
template <class ReadNext>
void read_words(const ReadNext& read_next) {
  std::vector<UnknownWord> unknown;
  for (bool has_more = true; has_more;) {
    try {
      has_more = read_next();
    } catch (const UnknownWord& word) {
      unknown.push_back(word);
    } catch (const UserError&) {
      if (unknown.empty()) throw;
      has_more = false;
    }
  }
  if (!unknown.empty()) throw error_about(unknown);
}

}  // namespace lrun::launcher
