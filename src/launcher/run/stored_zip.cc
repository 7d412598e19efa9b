#include "run/stored_zip.h"

#include <cstddef>
#include <cstdint>

namespace lrun::launcher {
namespace {

// The first bytes of each part of an archive.
constexpr std::size_t kFile = 0x04034B50;
constexpr std::size_t kEntry = 0x02014B50;
constexpr std::size_t kEnd = 0x06054B50;

/// Little-endian, as everything in a zip archive.
void put(std::string& bytes, int width, std::size_t number) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(number >> (8 * i) & 0xFFU));
}

std::uint32_t crc32(std::string_view bytes) {
  constexpr std::uint32_t kPolynomial = 0xEDB88320;
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0);
  }
  return ~crc;
}

/// The part that the header of a file and its entry in the directory have in common.
std::string facts_of_file(std::string_view name, std::string_view content) {
  constexpr std::size_t kVersion = 10;
  constexpr std::size_t kFirstDay = 0x21;  // of the year 1980, where the format's time begins
  std::string facts;
  put(facts, 2, kVersion);
  put(facts, 2, 0);  // flags
  put(facts, 2, 0);  // stored
  put(facts, 2, 0);  // time
  put(facts, 2, kFirstDay);
  put(facts, 4, crc32(content));
  put(facts, 4, content.size());
  put(facts, 4, content.size());
  put(facts, 2, name.size());
  put(facts, 2, 0);  // bytes of extra fields
  return facts;
}

}  // namespace

std::string stored_zip(std::string_view name, std::string_view content) {
  const std::string facts = facts_of_file(name, content);
  std::string archive;
  put(archive, 4, kFile);
  archive.append(facts).append(name).append(content);

  std::string directory;
  put(directory, 4, kEntry);
  put(directory, 2, 10);  // version of the maker
  directory += facts;
  put(directory, 2, 0);  // bytes of the comment
  put(directory, 4, 0);  // disk and kind of the file
  put(directory, 4, 0);  // attributes
  put(directory, 4, 0);  // the file is the first
  directory += name;

  const std::size_t begin = archive.size();
  archive += directory;
  put(archive, 4, kEnd);
  put(archive, 4, 0);  // disks
  put(archive, 2, 1);  // files on this disk
  put(archive, 2, 1);  // and in all
  put(archive, 4, directory.size());
  put(archive, 4, begin);
  put(archive, 2, 0);  // bytes of the comment
  return archive;
}

}  // namespace lrun::launcher
