// In: a decoded request. Out: the bytes of its answer, or why its connection must be closed. StoreServer calls.
#include "store/handle_request.h"

#include <cstring>
#include <string_view>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr const char* kNotANumber = "the value of a counter is not a number";

std::string too_long() { return "an answer of more than " + std::to_string(kMaxMessageBytes) + " bytes"; }

/// A full store can still be read: an answer of this size is always allowed.
std::string no_room_for_large(std::uint64_t bytes, const WhyNoRoom& why_no_room) {
  constexpr std::uint64_t kAlwaysTaken = std::uint64_t{64} << 10U;
  return bytes > kAlwaysTaken && why_no_room ? why_no_room(bytes) : std::string();
}

std::string append_values(const KeyValueTable& table, const std::vector<std::string>& keys, std::string& answer,
                          const WhyNoRoom& why_no_room) {
  std::uint64_t bytes = 0;  // counted before anything is copied: every key may name the same large value
  for (const std::string& key : keys) bytes += sizeof(std::uint64_t) + table.get(key).size();
  if (bytes > kMaxMessageBytes) return too_long();
  if (std::string why = no_room_for_large(bytes, why_no_room); !why.empty()) return why;
  answer.reserve(answer.size() + static_cast<std::size_t>(bytes));
  for (const std::string& key : keys) append_string(answer, table.get(key));
  return {};
}

std::string append_keys(const KeyValueTable& table, std::string& answer, const WhyNoRoom& why_no_room) {
  std::uint64_t bytes = sizeof(std::uint64_t);
  for (const auto& [key, value] : table.values()) bytes += sizeof(std::uint64_t) + key.size();
  if (bytes > kMaxMessageBytes) return too_long();
  if (std::string why = no_room_for_large(bytes, why_no_room); !why.empty()) return why;
  answer.reserve(answer.size() + static_cast<std::size_t>(bytes));
  append_number(answer, static_cast<std::int64_t>(table.values().size()));
  for (const auto& [key, value] : table.values()) append_string(answer, key);
  return {};
}

void set_pairs(KeyValueTable& table, std::vector<std::string>& strings) {
  for (std::size_t i = 0; i + 1 < strings.size(); i += 2) table.set(std::move(strings[i]), std::move(strings[i + 1]));
}

void pop(KeyValueTable& table, const std::string& key, std::string& answer) {
  const KeyValueTable::Popped popped = table.queue_pop(key);
  append_number(answer, popped.length_before);
  if (popped.length_before > 0) append_string(answer, popped.value);
}

std::string arrive(KeyValueTable& table, StoreClientId client, const StoreRequest& request, std::string& answer) {
  const auto outcome = table.arrive(client, request.strings[0], static_cast<std::int64_t>(request.number));
  if (outcome == KeyValueTable::Barrier::kNotANumber) return kNotANumber;
  if (outcome == KeyValueTable::Barrier::kOpen) answer.push_back(kStopWaiting);
  return {};
}

std::string add(KeyValueTable& table, const StoreRequest& request, std::string& answer) {
  const auto sum = table.add(request.strings[0], static_cast<std::int64_t>(request.number));
  if (!sum) return kNotANumber;
  append_number(answer, *sum);
  return {};
}

void append_nonce(std::string& answer, std::uint64_t number) {
  const auto nonce = static_cast<std::uint32_t>(number);
  char bytes[sizeof nonce];
  std::memcpy(bytes, &nonce, sizeof nonce);
  answer.append(bytes, sizeof bytes);
}

bool writes(StoreCommand command) {
  switch (command) {
    case StoreCommand::kSet:
    case StoreCommand::kCompareSet:
    case StoreCommand::kAdd:
    case StoreCommand::kAppend:
    case StoreCommand::kMultiSet:
    case StoreCommand::kQueuePush:
    case StoreCommand::kBarrier:
      return true;
    default:
      return false;
  }
}

/// A value that replaces another counts in full: what it replaces is not looked up.
std::string no_room_for(const StoreRequest& request, const WhyNoRoom& why_no_room) {
  if (request.command == StoreCommand::kWait) {
    return no_room_for_large(KeyValueTable::bytes_of_wait(request.strings), why_no_room);
  }
  if (!writes(request.command) || !why_no_room) return {};
  std::uint64_t bytes = 0;
  for (const std::string& text : request.strings) bytes += text.size();
  return why_no_room(bytes);
}

}  // namespace

std::string handle_request(KeyValueTable& table, StoreClientId client, StoreRequest request, std::string& answer,
                           const WhyNoRoom& why_no_room) {
  if (std::string why = no_room_for(request, why_no_room); !why.empty()) return why;
  std::vector<std::string>& strings = request.strings;
  switch (request.command) {
    case StoreCommand::kValidate:
      break;  // the decoder has compared the magic number
    case StoreCommand::kSet:
      table.set(std::move(strings[0]), std::move(strings[1]));
      break;
    case StoreCommand::kCompareSet:
      append_string(answer, table.compare_set(strings[0], strings[1], std::move(strings[2])));
      break;
    case StoreCommand::kGet:
    case StoreCommand::kMultiGet:
      return append_values(table, strings, answer, why_no_room);
    case StoreCommand::kAdd:
      return add(table, request, answer);
    case StoreCommand::kCheck:
      answer.push_back(table.check(strings) ? kReady : kNotReady);
      break;
    case StoreCommand::kWait:
      if (table.wait(client, strings)) answer.push_back(kStopWaiting);
      break;
    case StoreCommand::kNumKeys:
      append_number(answer, static_cast<std::int64_t>(table.values().size()));
      break;
    case StoreCommand::kDeleteKey:
      append_number(answer, table.delete_key(strings[0]) ? 1 : 0);
      break;
    case StoreCommand::kAppend:
      table.append(strings[0], strings[1]);
      break;
    case StoreCommand::kMultiSet:
      set_pairs(table, strings);
      break;
    case StoreCommand::kCancelWait:
      table.cancel_wait(client);
      answer.push_back(kWaitCanceled);
      break;
    case StoreCommand::kPing:
      append_nonce(answer, request.number);
      break;
    case StoreCommand::kQueuePush:
      table.queue_push(strings[0], std::move(strings[1]));
      break;
    case StoreCommand::kQueuePop:
      pop(table, strings[0], answer);
      break;
    case StoreCommand::kQueueLength:
      append_number(answer, table.queue_length(strings[0]));
      break;
    case StoreCommand::kListKeys:
      return append_keys(table, answer, why_no_room);
    case StoreCommand::kBarrier:
      return arrive(table, client, request, answer);
  }
  return {};
}

}  // namespace lrun::launcher
