#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lrun::test {

/// Of a command line.
using Words = std::vector<std::string>;

inline Words shell(const std::string& script) { return {"sh", "-c", script}; }

inline Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// How often `part` is in `text`.
inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace lrun::test
