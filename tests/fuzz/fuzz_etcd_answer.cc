// An answer in the place of etcd's is read or refused, and memory stays bounded.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "rendezvous/job_state.h"
#include "rendezvous/leader_record.h"
#include "store/base64.h"
#include "store/etcd_message.h"
#include "store/http_response.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lrun;
  using namespace lrun::launcher;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);

  HttpResponseReader whole;
  auto response = whole.feed(bytes);
  HttpResponseReader pieces;
  std::optional<HttpResponse> cut;
  for (std::string_view left = bytes; !left.empty() && !cut;
       left.remove_prefix(std::min<std::size_t>(left.size(), 5))) {
    cut = pieces.feed(left.substr(0, 5));
  }
  if (response && cut && *response != *cut) std::abort();
  if (!response) response = whole.end();
  if (response && response->body.size() > HttpResponseReader::kMostBytes) std::abort();

  (void)etcd_answer_from_json(bytes);
  if (response) (void)etcd_answer_from_json(response->body);
  if (const auto text = from_base64(bytes); text && to_base64(*text) != bytes) std::abort();
  if (from_base64(to_base64(bytes)) != bytes) std::abort();
  if (const auto state = job_state_from_json(bytes); state && job_state_from_json(to_json(*state)) != state)
    std::abort();
  if (const auto record = leader_record_from_json(bytes)) {
    if (leader_record_from_json(to_json(*record)) != record) std::abort();
  }
  return 0;
}
