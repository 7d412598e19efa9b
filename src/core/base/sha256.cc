// In: bytes, and a key. Out: their digest. Called for the secret of a job. By hand, because the launcher links no
// crypto library: OpenSSL is opened only for an etcd over https.
#include "base/sha256.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace lrun::inline core {
namespace {

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kLengthBytes = 8;
constexpr unsigned kBitsOfByte = 8;
constexpr std::size_t kRounds = 64;

using State = std::array<std::uint32_t, 8>;

constexpr State kFirstState{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

constexpr std::array<std::uint32_t, kRounds> kConstants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian_word(std::string_view block, std::size_t index) {
  std::uint32_t word = 0;
  for (const char byte : block.substr(index * sizeof word, sizeof word)) {
    word = (word << kBitsOfByte) | static_cast<unsigned char>(byte);
  }
  return word;
}

std::array<std::uint32_t, kRounds> schedule_of(std::string_view block) {
  std::array<std::uint32_t, kRounds> words{};
  for (std::size_t i = 0; i < kBlockBytes / sizeof(std::uint32_t); ++i) words[i] = big_endian_word(block, i);
  for (std::size_t i = kBlockBytes / sizeof(std::uint32_t); i < kRounds; ++i) {
    const std::uint32_t early = words[i - 15];
    const std::uint32_t late = words[i - 2];
    const std::uint32_t mixed_early = std::rotr(early, 7) ^ std::rotr(early, 18) ^ (early >> 3U);
    const std::uint32_t mixed_late = std::rotr(late, 17) ^ std::rotr(late, 19) ^ (late >> 10U);
    words[i] = words[i - 16] + mixed_early + words[i - 7] + mixed_late;
  }
  return words;
}

/// The letters are those of the standard.
void take_block(State& state, std::string_view block) {
  const auto words = schedule_of(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice + kConstants[i] + words[i];
    const std::uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const State change{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += change[i];
}

template <class Number>
void append_big_end_first(std::string& text, Number number) {
  for (std::size_t i = sizeof number; i-- > 0;) {
    text.push_back(static_cast<char>((number >> (i * kBitsOfByte)) & 0xFFU));
  }
}

}  // namespace

std::string sha256(std::string_view bytes) {
  const std::uint64_t bits = std::uint64_t{bytes.size()} * kBitsOfByte;
  State state = kFirstState;
  for (; bytes.size() >= kBlockBytes; bytes.remove_prefix(kBlockBytes)) take_block(state, bytes);
  std::string rest(bytes);
  rest.push_back('\x80');
  while (rest.size() % kBlockBytes != kBlockBytes - kLengthBytes) rest.push_back('\0');
  append_big_end_first(rest, bits);
  for (std::string_view left = rest; !left.empty(); left.remove_prefix(kBlockBytes)) take_block(state, left);
  std::string digest;
  for (const std::uint32_t word : state) append_big_end_first(digest, word);
  return digest;
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string block = key.size() > kBlockBytes ? sha256(key) : std::string(key);
  block.resize(kBlockBytes, '\0');
  std::string inner = block;
  std::string outer = block;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  return sha256(outer + sha256(inner.append(message)));
}

std::string in_hexadecimal(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr unsigned kHalf = 4;
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text.push_back(kDigits[value >> kHalf]);
    text.push_back(kDigits[value & 0xFU]);
  }
  return text;
}

bool equal_in_constant_time(std::string_view first, std::string_view second) noexcept {
  if (first.size() != second.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(first[i]) ^ static_cast<unsigned char>(second[i]));
  }
  return difference == 0;
}

}  // namespace lrun::inline core
