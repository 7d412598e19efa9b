// Any bytes, cut anywhere, give the requests that they give in one piece; memory grows with what came, and what was
// decoded can be written and carried out.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "store/handle_request.h"
#include "wire/store_protocol.h"

namespace {

using lrun::StoreRequest;
using lrun::StoreRequestDecoder;

constexpr std::size_t kHelloBytes = 5;
constexpr std::size_t kMostHeldForAByte = 16;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

struct Decoded {
  std::vector<StoreRequest> requests;
  std::string refusal;

  bool operator==(const Decoded&) const = default;
};

/// `cuts` chooses the length of each piece, over and over; empty: one piece.
Decoded decode(std::string_view bytes, std::string_view cuts) {
  StoreRequestDecoder decoder;
  Decoded decoded;
  std::size_t piece = 0;
  std::size_t came = 0;
  while (!bytes.empty() && decoder.refusal().empty()) {
    const std::size_t wanted =
        cuts.empty() ? bytes.size() : std::size_t{1} + static_cast<std::uint8_t>(cuts[piece++ % cuts.size()]) % 32;
    std::string_view input = bytes.substr(0, std::min(wanted, bytes.size()));
    bytes.remove_prefix(input.size());
    came += input.size();
    while (auto request = decoder.next(input)) decoded.requests.push_back(std::move(*request));
    require(decoder.held_bytes() <= kMostHeldForAByte * (came + kHelloBytes), "more is held than came");
    require(input.empty() || !decoder.refusal().empty(), "bytes were left though more were wanted");
  }
  decoded.refusal = decoder.refusal();
  return decoded;
}

std::size_t memory_of(const StoreRequest& request) {
  std::size_t bytes = request.strings.capacity() * sizeof(std::string);
  for (const std::string& string : request.strings) bytes += string.capacity();
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first byte says how many of the next choose the cuts, and whether the client begins with a handshake.
  if (size == 0) return 0;
  const std::size_t cuts_size = std::min<std::size_t>(data[0] & 0x0FU, size - 1);
  const bool has_handshake = (data[0] & 0x80U) == 0;
  const std::string_view cuts(reinterpret_cast<const char*>(data) + 1, cuts_size);
  std::string bytes;
  if (has_handshake) lrun::append_request(bytes, {lrun::StoreCommand::kValidate, {}, lrun::kStoreMagic});
  bytes.append(reinterpret_cast<const char*>(data) + 1 + cuts_size, size - 1 - cuts_size);

  const Decoded whole = decode(bytes, {});
  require(decode(bytes, cuts.empty() ? std::string_view("\0", 1) : cuts) == whole, "a cut changed the requests");

  std::string written;
  std::size_t memory = 0;
  for (const StoreRequest& request : whole.requests) {
    lrun::append_request(written, request);
    memory += memory_of(request);
  }
  require(bytes.compare(0, written.size(), written) == 0, "written again, the requests are other bytes");
  // A string of no bytes costs 8 on the wire and sizeof(std::string) twice, at worst, in a vector that grew.
  require(memory <= 16 * (bytes.size() + kHelloBytes), "memory grew beyond what came");

  lrun::launcher::KeyValueTable table;
  std::string answer;
  lrun::launcher::StoreClientId client = 1;
  for (StoreRequest request : whole.requests) {
    if (!lrun::launcher::handle_request(table, client, std::move(request), answer).empty()) break;
    (void)table.take_released();
    client = client % 3 + 1;
  }
  for (lrun::launcher::StoreClientId id = 1; id <= 3; ++id) table.cancel_wait(id);
  return 0;
}
