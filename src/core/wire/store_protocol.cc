// In: bytes of one connection, in any pieces. Out: requests, or why the connection is refused; and the bytes of
// requests and answers. The launcher's store decodes; liblrun, its tests and the store's own tests encode.
#include "wire/store_protocol.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lrun::inline core {
namespace {

/// The arguments of a command: a counted or a fixed run of strings, then perhaps an integer.
struct Shape {
  bool counted = false;           // a u64 says how often `strings` is repeated
  std::string_view strings = {};  // one letter a string: key or value
  std::size_t number_bytes = 0;
};

constexpr std::array<Shape, kStoreCommandCount> kShapes{{
    {false, "", 4},     // VALIDATE magic
    {false, "kv", 0},   // SET
    {false, "kvv", 0},  // COMPARE_SET expected, desired
    {false, "k", 0},    // GET
    {false, "k", 8},    // ADD amount
    {true, "k", 0},     // CHECK
    {true, "k", 0},     // WAIT
    {false, "", 0},     // GETNUMKEYS
    {false, "k", 0},    // DELETE_KEY
    {false, "kv", 0},   // APPEND
    {true, "k", 0},     // MULTI_GET
    {true, "kv", 0},    // MULTI_SET
    {false, "", 0},     // CANCEL_WAIT
    {false, "", 4},     // PING nonce
    {false, "kv", 0},   // QUEUE_PUSH
    {false, "k", 0},    // QUEUE_POP
    {false, "k", 0},    // QUEUE_LEN
    {false, "", 0},     // LIST_KEYS
    {false, "k", 8},    // BARRIER world size
}};

const Shape& shape_of(StoreCommand command) { return kShapes[static_cast<std::size_t>(command)]; }

/// torch 2.0 put the magic number in front of every request; this is its first byte.
constexpr std::uint8_t kFirstByteOfTorch20 = 0xCE;

void append_raw(std::string& out, const void* bytes, std::size_t size) {
  out.append(static_cast<const char*>(bytes), size);
}

void append_count(std::string& out, std::uint64_t count) { append_raw(out, &count, sizeof count); }

}  // namespace

std::optional<StoreRequest> StoreRequestDecoder::next(std::string_view& bytes) {
  while (refusal_.empty()) {
    if (step_ == Step::kWhole) {
      step_ = Step::kCommand;
      text_bytes_ = 0;
      return std::exchange(request_, {});
    }
    if (!advance(bytes)) break;
  }
  return std::nullopt;
}

bool StoreRequestDecoder::advance(std::string_view& bytes) {
  if (step_ == Step::kString) return take_string(bytes);
  const std::size_t width = step_ == Step::kCommand  ? 1
                            : step_ == Step::kNumber ? shape_of(request_.command).number_bytes
                                                     : sizeof(std::uint64_t);
  const std::optional<std::uint64_t> integer = take_integer(bytes, width);
  if (!integer) return false;
  switch (step_) {
    case Step::kCommand:
      begin(static_cast<std::uint8_t>(*integer));
      break;
    case Step::kCount:
      take_count(*integer);
      break;
    case Step::kLength:
      take_length(*integer);
      break;
    case Step::kNumber:
      take_number(*integer);
      break;
    case Step::kString:
    case Step::kWhole:
      break;
  }
  return true;
}

std::optional<std::uint64_t> StoreRequestDecoder::take_integer(std::string_view& bytes, std::size_t width) {
  const std::size_t taken = std::min(width - integer_size_, bytes.size());
  std::memcpy(integer_.data() + integer_size_, bytes.data(), taken);
  bytes.remove_prefix(taken);
  integer_size_ += taken;
  if (integer_size_ < width) return std::nullopt;
  std::uint64_t integer = 0;
  if (width == 1) {
    integer = static_cast<std::uint8_t>(integer_[0]);
  } else if (width == sizeof(std::uint32_t)) {
    std::uint32_t narrow = 0;
    std::memcpy(&narrow, integer_.data(), sizeof narrow);
    integer = narrow;
  } else {
    std::memcpy(&integer, integer_.data(), sizeof integer);
  }
  integer_size_ = 0;
  return integer;
}

void StoreRequestDecoder::begin(std::uint8_t command) {
  // Refused at the first byte: a client of another protocol sends no more before it gets an answer.
  if (!validated_ && command != static_cast<std::uint8_t>(StoreCommand::kValidate)) {
    refusal_ = command == kFirstByteOfTorch20
                   ? "it speaks the protocol of torch 2.0, and torch 2.1 or newer is needed"
                   : "it does not begin with VALIDATE, as a client of torch 2.1 or newer does";
    return;
  }
  if (command >= kStoreCommandCount) {
    refusal_ = "unknown request " + std::to_string(command);
    return;
  }
  if (validated_ && command == static_cast<std::uint8_t>(StoreCommand::kValidate)) {
    refusal_ = "a second VALIDATE";
    return;
  }
  request_.command = static_cast<StoreCommand>(command);
  total_bytes_ = 0;
  const Shape& shape = shape_of(request_.command);
  if (shape.counted) {
    step_ = Step::kCount;
    return;
  }
  strings_left_ = shape.strings.size();
  request_.strings.reserve(shape.strings.size());
  go_to_next_field();
}

void StoreRequestDecoder::take_count(std::uint64_t count) {
  if (count > kMaxKeysPerRequest) {
    refusal_ = std::to_string(count) + " keys in one request, and at most " + std::to_string(kMaxKeysPerRequest) +
               " are taken";
    return;
  }
  strings_left_ = count * shape_of(request_.command).strings.size();
  go_to_next_field();
}

bool StoreRequestDecoder::next_string_is_key() const {
  const std::string_view strings = shape_of(request_.command).strings;
  return strings[request_.strings.size() % strings.size()] == 'k';
}

void StoreRequestDecoder::take_length(std::uint64_t length) {
  const bool is_key = next_string_is_key();
  const std::uint64_t limit = is_key ? kMaxKeyBytes : kMaxValueBytes;
  if (length > limit) {
    refusal_ = std::string(is_key ? "a key" : "a value") + " of " + std::to_string(length) + " bytes, and at most " +
               std::to_string(limit) + " are taken";
    return;
  }
  total_bytes_ += length;
  if (total_bytes_ > kMaxMessageBytes) {
    refusal_ = "a request of more than " + std::to_string(kMaxMessageBytes) + " bytes";
    return;
  }
  request_.strings.emplace_back();
  --strings_left_;
  string_missing_ = length;
  step_ = Step::kString;
}

bool StoreRequestDecoder::take_string(std::string_view& bytes) {
  const std::size_t taken = static_cast<std::size_t>(std::min<std::uint64_t>(string_missing_, bytes.size()));
  std::string& string = request_.strings.back();
  if (string.empty()) {
    string = std::string(bytes.substr(0, taken));  // of its exact size: a value may be kept for long
  } else {
    string.append(bytes.substr(0, taken));
  }
  bytes.remove_prefix(taken);
  string_missing_ -= taken;
  text_bytes_ += taken;
  if (string_missing_ > 0) return false;
  go_to_next_field();
  return true;
}

void StoreRequestDecoder::take_number(std::uint64_t number) {
  if (request_.command == StoreCommand::kValidate) {
    if (number != kStoreMagic) {
      refusal_ = "a wrong magic number";
      return;
    }
    validated_ = true;
  }
  request_.number = number;
  step_ = Step::kWhole;
}

void StoreRequestDecoder::go_to_next_field() {
  if (strings_left_ > 0) {
    step_ = Step::kLength;
  } else {
    step_ = shape_of(request_.command).number_bytes > 0 ? Step::kNumber : Step::kWhole;
  }
}

void append_request(std::string& out, const StoreRequest& request) {
  const Shape& shape = shape_of(request.command);
  out.push_back(static_cast<char>(request.command));
  if (shape.counted) append_count(out, request.strings.size() / shape.strings.size());
  for (const std::string& string : request.strings) append_string(out, string);
  append_raw(out, &request.number, shape.number_bytes);  // host order: little-endian wherever torch runs
}

void append_number(std::string& out, std::int64_t number) { append_raw(out, &number, sizeof number); }

void append_string(std::string& out, std::string_view bytes) {
  append_count(out, bytes.size());
  out.append(bytes);
}

}  // namespace lrun::inline core
