// In: headers and manifests of checkpoint files. Out: their bytes, and back. Pure; called by the other files of this
// folder.
#include "runtime/checkpoint/format.h"

#include <algorithm>

#include "base/crc32c.h"

namespace lrun::detail {
namespace {

constexpr std::string_view kMark = "lrunckpt";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChecked = kCheckpointHeaderBytes - 4;
constexpr std::size_t kPartBytes = 12;

template <class Number>
void put(char* place, Number value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte) place[byte] = static_cast<char>(value >> (8 * byte) & 0xff);
}

template <class Number>
Number get(const char* place) {
  Number value = 0;
  for (std::size_t byte = 0; byte < sizeof value; ++byte) {
    value |= static_cast<Number>(static_cast<unsigned char>(place[byte])) << (8 * byte);
  }
  return value;
}

std::string of_bytes(std::uint64_t there, std::uint64_t expected) {
  return std::to_string(there) + " of " + std::to_string(expected) + " bytes";
}

bool makes_sense(const CheckpointHeader& header) {
  const bool one_file = header.kind == CheckpointKind::kWhole && header.part == 0 && header.parts == 1;
  const bool of_many =
      header.kind == CheckpointKind::kPart || (header.kind == CheckpointKind::kManifest && header.part == 0);
  return one_file || (of_many && header.part < header.parts && header.parts <= kMostCheckpointParts);
}

}  // namespace

std::array<char, kCheckpointHeaderBytes> encode_checkpoint_header(const CheckpointHeader& header) {
  std::array<char, kCheckpointHeaderBytes> bytes{};
  std::copy(kMark.begin(), kMark.end(), bytes.begin());
  put(bytes.data() + 8, kVersion);
  put(bytes.data() + 12, static_cast<std::uint32_t>(header.kind));
  put(bytes.data() + 16, header.step);
  put(bytes.data() + 24, header.save);
  put(bytes.data() + 32, header.part);
  put(bytes.data() + 36, header.parts);
  put(bytes.data() + 40, header.content_size);
  put(bytes.data() + 48, header.content_checksum);
  put(bytes.data() + kChecked, crc32c({bytes.data(), kChecked}));
  return bytes;
}

std::variant<CheckpointHeader, std::string> decode_checkpoint_header(std::string_view bytes, std::uint64_t file_size) {
  if (!kMark.starts_with(bytes.substr(0, kMark.size()))) return "it is not a checkpoint of liblrun";
  if (bytes.size() < kCheckpointHeaderBytes || file_size < kCheckpointHeaderBytes) {
    return "it ends within its header: " +
           of_bytes(std::min<std::uint64_t>(bytes.size(), file_size), kCheckpointHeaderBytes);
  }
  if (get<std::uint32_t>(bytes.data() + kChecked) != crc32c(bytes.substr(0, kChecked))) {
    return "its header is damaged: the checksum is wrong";
  }
  const auto version = get<std::uint32_t>(bytes.data() + 8);
  if (version != kVersion) return "it is of another version of liblrun: its format is " + std::to_string(version);
  CheckpointHeader header;
  header.kind = static_cast<CheckpointKind>(get<std::uint32_t>(bytes.data() + 12));
  header.step = get<std::uint64_t>(bytes.data() + 16);
  header.save = get<std::uint64_t>(bytes.data() + 24);
  header.part = get<std::uint32_t>(bytes.data() + 32);
  header.parts = get<std::uint32_t>(bytes.data() + 36);
  header.content_size = get<std::uint64_t>(bytes.data() + 40);
  header.content_checksum = get<std::uint32_t>(bytes.data() + 48);
  if (!makes_sense(header)) return "its header is damaged: it contradicts itself";
  const std::uint64_t content = file_size - kCheckpointHeaderBytes;
  if (content < header.content_size) return "it is cut off: " + of_bytes(content, header.content_size);
  if (content > header.content_size) {
    return "it is damaged: " + std::to_string(content - header.content_size) + " bytes follow its end";
  }
  return header;
}

std::string encode_checkpoint_parts(const std::vector<CheckpointPart>& parts) {
  std::string bytes(parts.size() * kPartBytes, '\0');
  for (std::size_t part = 0; part < parts.size(); ++part) {
    put(bytes.data() + part * kPartBytes, parts[part].size);
    put(bytes.data() + part * kPartBytes + 8, parts[part].checksum);
  }
  return bytes;
}

std::optional<std::vector<CheckpointPart>> decode_checkpoint_parts(std::string_view bytes, std::uint32_t parts) {
  if (parts == 0 || parts > kMostCheckpointParts || bytes.size() != parts * kPartBytes) return std::nullopt;
  std::vector<CheckpointPart> result(parts);
  for (std::size_t part = 0; part < parts; ++part) {
    const char* const place = bytes.data() + part * kPartBytes;
    result[part] = {get<std::uint64_t>(place), get<std::uint32_t>(place + 8)};
  }
  return result;
}

}  // namespace lrun::detail
