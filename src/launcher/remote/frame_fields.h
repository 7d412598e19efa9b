#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// Four bytes, the lowest first.
void put_number(std::string& bytes, std::uint32_t number);
/// \param bytes  at least four.
std::uint32_t number_at(std::string_view bytes);

/// The fields of a frame's payload, one behind the other.
class FieldWriter {
 public:
  FieldWriter& put(std::string_view text);
  FieldWriter& put(int number);
  FieldWriter& put(const std::vector<std::string>& texts);
  std::string take();

 private:
  std::string bytes_;
};

/// What FieldWriter wrote. What is missing reads as nothing, and is remembered.
class FieldReader {
 public:
  /// \param bytes  the caller's, which keeps them.
  explicit FieldReader(std::string_view bytes) : bytes_(bytes) {}

  int number();
  std::string text();
  std::vector<std::string> texts();
  /// How many of something follow.
  std::size_t count();
  /// Everything was there, and nothing more.
  [[nodiscard]] bool whole() const { return whole_ && bytes_.empty(); }

 private:
  int fail();

  std::string_view bytes_;
  bool whole_ = true;
};

}  // namespace lrun::launcher
