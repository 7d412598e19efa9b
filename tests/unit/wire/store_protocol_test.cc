#include "wire/store_protocol.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace lrun {
namespace {

std::string from_hex(std::string_view text) {
  std::string bytes;
  std::string digits;
  for (const char letter : text) {
    if (letter == ' ') continue;
    digits.push_back(letter);
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<char>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

const std::string kHello = from_hex("00 cef7853c");

struct Decoded {
  std::vector<StoreRequest> requests;  // without the VALIDATE at the front
  std::string refusal;

  bool operator==(const Decoded&) const = default;
};

/// What a fresh connection gets out of kHello and `bytes` when they come in pieces.
Decoded decode_in_pieces(const std::string& bytes, std::size_t piece) {
  const std::string all = kHello + bytes;
  StoreRequestDecoder decoder;
  Decoded decoded;
  for (std::size_t at = 0; at < all.size(); at += piece) {
    std::string_view input = std::string_view(all).substr(at, piece);
    while (auto request = decoder.next(input)) {
      if (request->command != StoreCommand::kValidate) decoded.requests.push_back(*request);
    }
    if (!decoder.refusal().empty()) break;
    EXPECT_TRUE(input.empty()) << "an incomplete request must have taken all bytes";
  }
  decoded.refusal = decoder.refusal();
  return decoded;
}

Decoded decode(const std::string& bytes) { return decode_in_pieces(bytes, std::string::npos / 2); }

std::string encode(const StoreRequest& request) {
  std::string bytes;
  append_request(bytes, request);
  return bytes;
}

constexpr std::uint64_t kMinusSeven = static_cast<std::uint64_t>(-7);

struct Example {
  const char* hex;
  StoreRequest request;
};

/// One request of every kind, as torch's client writes it.
const std::vector<Example>& examples() {
  static const std::vector<Example> kExamples = {
      {"01 0200000000000000 2f6b 0100000000000000 76", {StoreCommand::kSet, {"/k", "v"}}},
      {"02 0200000000000000 2f6b 0000000000000000 0100000000000000 76", {StoreCommand::kCompareSet, {"/k", "", "v"}}},
      {"03 0200000000000000 2f6b", {StoreCommand::kGet, {"/k"}}},
      {"04 0500000000000000 696e69742f 0100000000000000", {StoreCommand::kAdd, {"init/"}, 1}},
      {"04 0200000000000000 2f6b f9ffffffffffffff", {StoreCommand::kAdd, {"/k"}, kMinusSeven}},
      {"05 0100000000000000 0200000000000000 2f6b", {StoreCommand::kCheck, {"/k"}}},
      {"06 0100000000000000 0200000000000000 2f6b", {StoreCommand::kWait, {"/k"}}},
      {"06 0000000000000000", {StoreCommand::kWait}},
      {"07", {StoreCommand::kNumKeys}},
      {"08 0200000000000000 2f6b", {StoreCommand::kDeleteKey, {"/k"}}},
      {"09 0200000000000000 2f6b 0200000000000000 00ff", {StoreCommand::kAppend, {"/k", std::string("\0\xff", 2)}}},
      {"0a 0200000000000000 0200000000000000 2f61 0200000000000000 2f62", {StoreCommand::kMultiGet, {"/a", "/b"}}},
      {"0b 0200000000000000 0200000000000000 2f61 0100000000000000 31 0200000000000000 2f62 0000000000000000",
       {StoreCommand::kMultiSet, {"/a", "1", "/b", ""}}},
      {"0c", {StoreCommand::kCancelWait}},
      {"0d 8f380000", {StoreCommand::kPing, {}, 0x388f}},
      {"0e 0200000000000000 2f71 0100000000000000 76", {StoreCommand::kQueuePush, {"/q", "v"}}},
      {"0f 0200000000000000 2f71", {StoreCommand::kQueuePop, {"/q"}}},
      {"10 0200000000000000 2f71", {StoreCommand::kQueueLength, {"/q"}}},
      {"11", {StoreCommand::kListKeys}},
      {"12 0200000000000000 2f62 0400000000000000", {StoreCommand::kBarrier, {"/b"}, 4}},
  };
  return kExamples;
}

std::string all_examples() {
  std::string bytes;
  for (const Example& example : examples()) bytes += from_hex(example.hex);
  return bytes;
}

TEST(StoreProtocol, ReadsEveryCommand) {
  for (const Example& example : examples()) {
    const Decoded decoded = decode(from_hex(example.hex));
    EXPECT_EQ(decoded.refusal, "") << example.hex;
    ASSERT_EQ(decoded.requests.size(), 1U) << example.hex;
    EXPECT_EQ(decoded.requests[0], example.request) << example.hex;
  }
}

TEST(StoreProtocol, WritesEveryCommand) {
  for (const Example& example : examples()) EXPECT_EQ(encode(example.request), from_hex(example.hex)) << example.hex;
  EXPECT_EQ(encode({StoreCommand::kValidate, {}, kStoreMagic}), kHello);
}

TEST(StoreProtocol, WritesTheAnswersOfTheReference) {
  std::string answer;
  append_number(answer, 1);
  append_string(answer, "v");
  EXPECT_EQ(answer, from_hex("0100000000000000 0100000000000000 76"));
}

TEST(StoreProtocol, TakesPipelinedRequestsInPiecesOfAnySize) {
  const std::string bytes = all_examples();
  const Decoded whole = decode(bytes);
  ASSERT_EQ(whole.requests.size(), examples().size());
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    EXPECT_EQ(decode_in_pieces(bytes, piece), whole) << "pieces of " << piece << " bytes";
  }
}

TEST(StoreProtocol, TakesARequestCutAtAnyByte) {
  const std::string all = kHello + all_examples();
  const Decoded whole = decode(all_examples());
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    StoreRequestDecoder decoder;
    std::vector<StoreRequest> requests;
    for (std::string_view piece : {std::string_view(all).substr(0, cut), std::string_view(all).substr(cut)}) {
      while (auto request = decoder.next(piece)) requests.push_back(*request);
    }
    ASSERT_EQ(requests.size(), whole.requests.size() + 1) << "cut at " << cut;
    requests.erase(requests.begin());
    EXPECT_EQ(requests, whole.requests) << "cut at " << cut;
  }
}

TEST(StoreProtocol, GivesAMultiSetOnlyWhenItIsWhole) {
  const std::string bytes = encode({StoreCommand::kMultiSet, {"/a", "1", "/b", "2"}});
  EXPECT_TRUE(decode(bytes.substr(0, bytes.size() - 1)).requests.empty());
}

TEST(StoreProtocol, RefusesAClientThatDoesNotBeginWithTheMagicNumber) {
  struct Case {
    const char* hex;
    const char* refusal;
  };
  const std::vector<Case> cases = {
      {"00 cef7853d", "a wrong magic number"},
      {"03", "it does not begin with VALIDATE, as a client of torch 2.1 or newer does"},
      {"47", "it does not begin with VALIDATE, as a client of torch 2.1 or newer does"},
      {"ce", "it speaks the protocol of torch 2.0, and torch 2.1 or newer is needed"},
  };
  for (const Case& it : cases) {
    StoreRequestDecoder decoder;
    const std::string bytes = from_hex(it.hex);
    std::string_view input = bytes;
    EXPECT_FALSE(decoder.next(input)) << it.hex;
    EXPECT_EQ(decoder.refusal(), it.refusal) << it.hex;
    EXPECT_FALSE(decoder.validated()) << it.hex;
  }
}

TEST(StoreProtocol, RefusesUnknownCommandsAndASecondValidate) {
  EXPECT_EQ(decode(from_hex("13")).refusal, "unknown request 19");
  EXPECT_EQ(decode(from_hex("ff")).refusal, "unknown request 255");
  EXPECT_EQ(decode(kHello).refusal, "a second VALIDATE");
}

TEST(StoreProtocol, GivesWhatCameBeforeARefusal) {
  const Decoded decoded = decode(from_hex("07 63"));
  ASSERT_EQ(decoded.requests.size(), 1U);
  EXPECT_EQ(decoded.requests[0].command, StoreCommand::kNumKeys);
  EXPECT_EQ(decoded.refusal, "unknown request 99");
}

std::string length(std::uint64_t bytes) {
  std::string out;
  append_number(out, static_cast<std::int64_t>(bytes));
  return out;
}

TEST(StoreProtocol, TakesKeysAndValuesUpToTheLimitAndNotOneByteMore) {
  const std::string longest_key(kMaxKeyBytes, 'k');
  const std::string longest_value(kMaxValueBytes, 'v');
  const Decoded decoded = decode(encode({StoreCommand::kSet, {longest_key, longest_value}}));
  EXPECT_EQ(decoded.refusal, "");
  ASSERT_EQ(decoded.requests.size(), 1U);
  EXPECT_EQ(decoded.requests[0].strings[1].size(), kMaxValueBytes);

  EXPECT_EQ(decode("\x03" + length(kMaxKeyBytes + 1)).refusal, "a key of 8193 bytes, and at most 8192 are taken");
  EXPECT_EQ(decode("\x01" + length(1) + "k" + length(kMaxValueBytes + 1)).refusal,
            "a value of 8388609 bytes, and at most 8388608 are taken");
}

TEST(StoreProtocol, TakesManyKeysUpToTheLimitAndNotOneMore) {
  const StoreRequest most{StoreCommand::kCheck, std::vector<std::string>(kMaxKeysPerRequest)};
  const Decoded decoded = decode(encode(most));
  EXPECT_EQ(decoded.refusal, "");
  ASSERT_EQ(decoded.requests.size(), 1U);
  EXPECT_EQ(decoded.requests[0].strings.size(), kMaxKeysPerRequest);

  for (const char* command : {"\x05", "\x06", "\x0a", "\x0b"}) {
    EXPECT_EQ(decode(command + length(kMaxKeysPerRequest + 1)).refusal,
              "131073 keys in one request, and at most 131072 are taken");
  }
  EXPECT_NE(decode("\x0b" + length(~std::uint64_t{0})).refusal, "") << "a negative count of pairs";
}

}  // namespace
}  // namespace lrun
