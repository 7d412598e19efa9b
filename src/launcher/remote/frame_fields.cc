#include "remote/frame_fields.h"

#include <algorithm>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostTexts = std::size_t{1} << 20U;

}  // namespace

void put_number(std::string& bytes, std::uint32_t number) {
  for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift & 0xFFU);
}

std::uint32_t number_at(std::string_view bytes) {
  std::uint32_t number = 0;
  for (unsigned i = 0; i < sizeof number; ++i) {
    number |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return number;
}

FieldWriter& FieldWriter::put(std::string_view text) {
  put_number(bytes_, static_cast<std::uint32_t>(text.size()));
  bytes_ += text;
  return *this;
}

FieldWriter& FieldWriter::put(int number) {
  put_number(bytes_, static_cast<std::uint32_t>(number));
  return *this;
}

FieldWriter& FieldWriter::put(const std::vector<std::string>& texts) {
  put(static_cast<int>(texts.size()));
  for (const std::string& text : texts) put(std::string_view(text));
  return *this;
}

std::string FieldWriter::take() { return std::move(bytes_); }

int FieldReader::number() {
  if (bytes_.size() < sizeof(std::uint32_t)) return fail();
  const std::uint32_t number = number_at(bytes_);
  bytes_.remove_prefix(sizeof number);
  return static_cast<int>(number);
}

std::string FieldReader::text() {
  const auto size = static_cast<std::size_t>(static_cast<std::uint32_t>(number()));
  if (size > bytes_.size()) fail();
  std::string text(bytes_.substr(0, size));
  bytes_.remove_prefix(std::min(size, bytes_.size()));
  return text;
}

std::vector<std::string> FieldReader::texts() {
  std::vector<std::string> texts(count());
  for (std::string& each : texts) each = text();
  return texts;
}

std::size_t FieldReader::count() {
  const auto count = static_cast<std::size_t>(static_cast<std::uint32_t>(number()));
  if (count > kMostTexts || count > bytes_.size()) return static_cast<std::size_t>(fail());
  return count;
}

int FieldReader::fail() {
  whole_ = false;
  bytes_ = {};
  return 0;
}

}  // namespace lrun::launcher
