#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::inline core {

/// The wire protocol of PyTorch's TCPStore, as clients of torch 2.1 to 2.15 speak it. Pure: bytes in, requests out.
///
/// A request is one command byte and its arguments; integers are in host order, a string is its u64 length and bytes.
/// Keys and values are bytes, not text. There are no request ids: answers come in the order of the requests.
enum class StoreCommand : std::uint8_t {
  kValidate = 0,  ///< no answer; the first request of a connection and only the first
  kSet,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kNumKeys,
  kDeleteKey,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,       ///< since 2.5
  kQueuePush,  ///< since 2.8, as the other two of queues
  kQueuePop,
  kQueueLength,
  kListKeys,  ///< since 2.10
  kBarrier,   ///< since 2.12
};

inline constexpr std::size_t kStoreCommandCount = 19;
inline constexpr std::uint32_t kStoreMagic = 0x3C85F7CE;

/// torch's libuv server has the same limits.
inline constexpr std::uint64_t kMaxKeysPerRequest = 131072;
inline constexpr std::uint64_t kMaxKeyBytes = 8192;
inline constexpr std::uint64_t kMaxValueBytes = std::uint64_t{8} << 20U;
/// All strings of one request, or one answer, together: the limits above alone would let one request take a terabyte.
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 30U;

/// The answer to CHECK.
inline constexpr char kReady = 0;
inline constexpr char kNotReady = 1;
/// The end of a WAIT or BARRIER, and the answer to CANCEL_WAIT.
inline constexpr char kStopWaiting = 0;
inline constexpr char kWaitCanceled = 1;

/// One whole request.
struct StoreRequest {
  StoreCommand command = StoreCommand::kValidate;
  std::vector<std::string> strings = {};  ///< keys and values as on the wire; MULTI_SET {key, value, key, value, …}
  std::uint64_t number = 0;               ///< magic, nonce, amount (two's complement) or world size

  bool operator==(const StoreRequest&) const = default;
};

/// Turns the bytes of one connection into requests, wherever the pieces were cut. Every byte is looked at once, and
/// memory grows with the bytes that came, never with a length that a client merely claims.
class StoreRequestDecoder {
 public:
  /// Consumes bytes from the front of `bytes` until one request is whole. Empty when more bytes are needed (all were
  /// consumed), or when the client was refused.
  std::optional<StoreRequest> next(std::string_view& bytes);

  /// Why the connection must be closed: one line without the client's name; empty while all is well.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  /// The approximate memory of an unfinished request: its texts, and the overhead of each.
  [[nodiscard]] std::uint64_t held_bytes() const { return text_bytes_ + request_.strings.size() * kBytesOfText; }

  /// Whether the client has sent the magic number.
  [[nodiscard]] bool validated() const { return validated_; }

 private:
  static constexpr std::uint64_t kBytesOfText = 2 * sizeof(std::string);  // in a vector that grew

  enum class Step { kCommand, kCount, kLength, kString, kNumber, kWhole };

  /// Does one step. False when it needs more bytes.
  bool advance(std::string_view& bytes);
  void begin(std::uint8_t command);
  void take_count(std::uint64_t count);
  void take_length(std::uint64_t length);
  bool take_string(std::string_view& bytes);
  void take_number(std::uint64_t number);
  void go_to_next_field();
  [[nodiscard]] bool next_string_is_key() const;
  std::optional<std::uint64_t> take_integer(std::string_view& bytes, std::size_t width);

  Step step_ = Step::kCommand;
  StoreRequest request_;
  std::uint64_t strings_left_ = 0;    // strings of this request still to begin
  std::uint64_t string_missing_ = 0;  // bytes of the last string still to come
  std::uint64_t total_bytes_ = 0;     // of the strings that have begun
  std::uint64_t text_bytes_ = 0;      // of the strings as far as they have come
  std::array<char, 8> integer_{};     // an integer that was cut in two
  std::size_t integer_size_ = 0;
  bool validated_ = false;
  std::string refusal_;
};

void append_request(std::string& out, const StoreRequest& request);

/// The pieces of answers.
void append_number(std::string& out, std::int64_t number);
void append_string(std::string& out, std::string_view bytes);

}  // namespace lrun::inline core
