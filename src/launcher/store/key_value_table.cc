// In: the store's operations. Out: values, and which waiting clients they release. handle_request() calls.
#include "store/key_value_table.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace lrun::launcher {
namespace {

std::optional<std::int64_t> read_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || errno == ERANGE) return std::nullopt;
  return number;
}

std::int64_t add_wrapping(std::int64_t left, std::int64_t right) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
}

using Clients = std::vector<StoreClientId>;

constexpr std::uint64_t kEntryBytes = 128;  // an entry's overhead beside its texts: 120 measured

void remove_client(std::unordered_map<std::string, Clients>& waiting, const std::string& key, StoreClientId client) {
  const auto entry = waiting.find(key);
  if (entry == waiting.end()) return;
  Clients& clients = entry->second;
  clients.erase(std::remove(clients.begin(), clients.end(), client), clients.end());
  if (clients.empty()) waiting.erase(entry);
}

/// The clients that wait under `key`, removed from there.
Clients take_clients(std::unordered_map<std::string, Clients>& waiting, const std::string& key) {
  const auto entry = waiting.find(key);
  if (entry == waiting.end()) return {};
  Clients clients = std::move(entry->second);
  waiting.erase(entry);
  return clients;
}

}  // namespace

/// Empty where the key is new.
template <typename Key>
KeyValueTable::Entry& KeyValueTable::entry_of(Key&& key) {
  const auto [entry, is_new] = values_.try_emplace(std::forward<Key>(key));
  if (is_new) bytes_ += entry->first.size() + kEntryBytes;
  return *entry;
}

void KeyValueTable::put(std::string& place, std::string value) {
  bytes_ += value.size();
  bytes_ -= place.size();
  place = std::move(value);
}

void KeyValueTable::set(std::string key, std::string value) {
  Entry& entry = entry_of(std::move(key));
  put(entry.second, std::move(value));
  key_was_written(entry.first);
}

std::string KeyValueTable::compare_set(const std::string& key, const std::string& expected, std::string desired) {
  const auto entry = values_.find(key);
  const bool absent = entry == values_.end();
  if (absent ? !expected.empty() : entry->second != expected) return absent ? expected : entry->second;
  std::string& value = absent ? entry_of(key).second : entry->second;
  put(value, std::move(desired));
  key_was_written(key);
  return value;
}

const std::string& KeyValueTable::get(const std::string& key) const {
  static const std::string kAbsent;
  const auto entry = values_.find(key);
  return entry == values_.end() ? kAbsent : entry->second;
}

std::optional<std::int64_t> KeyValueTable::add(const std::string& key, std::int64_t amount) {
  const auto entry = values_.find(key);
  const std::optional<std::int64_t> before = entry == values_.end() ? 0 : read_number(entry->second);
  if (!before) return std::nullopt;
  const std::int64_t sum = add_wrapping(*before, amount);
  put(entry == values_.end() ? entry_of(key).second : entry->second, std::to_string(sum));
  key_was_written(key);
  return sum;
}

void KeyValueTable::append(const std::string& key, const std::string& value) {
  entry_of(key).second.append(value);
  bytes_ += value.size();
  key_was_written(key);
}

bool KeyValueTable::delete_key(const std::string& key) {
  const auto entry = values_.find(key);
  if (entry == values_.end()) return false;
  bytes_ -= key.size() + entry->second.size() + kEntryBytes;
  values_.erase(entry);
  return true;
}

bool KeyValueTable::exists(const std::string& key) const { return values_.contains(key) || queues_.contains(key); }

bool KeyValueTable::check(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [this](const std::string& key) { return exists(key); });
}

bool KeyValueTable::wait(StoreClientId client, const std::vector<std::string>& keys) {
  cancel_wait(client);
  Wait wait;
  for (const std::string& key : keys) {
    if (exists(key)) continue;
    Clients& clients = waiting_for_key_[key];
    if (!clients.empty() && clients.back() == client) continue;  // the same key twice in one request
    clients.push_back(client);
    wait.keys.push_back(key);
  }
  wait.missing = wait.keys.size();
  if (wait.missing == 0) return true;
  begin_wait(client, std::move(wait));
  return false;
}

KeyValueTable::Barrier KeyValueTable::arrive(StoreClientId client, const std::string& key, std::int64_t world_size) {
  cancel_wait(client);
  const std::optional<std::int64_t> count = add(key, 1);
  if (!count) return Barrier::kNotANumber;
  if (*count < world_size) {
    waiting_at_barrier_[key].push_back(client);
    begin_wait(client, Wait{{key}, 1, true});
    return Barrier::kWaiting;
  }
  for (const StoreClientId waiting : take_clients(waiting_at_barrier_, key)) release(waiting);
  return Barrier::kOpen;
}

void KeyValueTable::cancel_wait(StoreClientId client) {
  const auto entry = waits_.find(client);
  if (entry == waits_.end()) return;
  auto& waiting = entry->second.at_barrier ? waiting_at_barrier_ : waiting_for_key_;
  for (const std::string& key : entry->second.keys) remove_client(waiting, key, client);
  end_wait(client);
}

/// Each key is kept with the wait, and in the index of those that wait for it.
std::uint64_t KeyValueTable::bytes_of_wait(const std::vector<std::string>& keys) {
  std::uint64_t bytes = 0;
  for (const std::string& key : keys) bytes += 2 * key.size() + kEntryBytes;
  return bytes;
}

std::uint64_t KeyValueTable::bytes_of_wait(StoreClientId client) const {
  const auto entry = waits_.find(client);
  return entry == waits_.end() ? 0 : entry->second.bytes;
}

void KeyValueTable::begin_wait(StoreClientId client, Wait wait) {
  wait.bytes = bytes_of_wait(wait.keys);
  bytes_ += wait.bytes;
  waits_.emplace(client, std::move(wait));
}

void KeyValueTable::end_wait(StoreClientId client) {
  const auto entry = waits_.find(client);
  bytes_ -= entry->second.bytes;
  waits_.erase(entry);
}

void KeyValueTable::key_was_written(const std::string& key) {
  if (waiting_for_key_.empty()) return;
  for (const StoreClientId client : take_clients(waiting_for_key_, key)) satisfy(client);
}

void KeyValueTable::satisfy(StoreClientId client) {
  const auto entry = waits_.find(client);
  if (--entry->second.missing == 0) release(client);
}

void KeyValueTable::release(StoreClientId client) {
  end_wait(client);
  released_.push_back(client);
}

void KeyValueTable::queue_push(const std::string& key, std::string value) {
  bytes_ += key.size() + value.size() + kEntryBytes;
  queues_[key].push_back(std::move(value));
  const auto entry = waiting_for_key_.find(key);
  if (entry == waiting_for_key_.end()) return;
  const StoreClientId first = entry->second.front();
  remove_client(waiting_for_key_, key, first);
  satisfy(first);
}

KeyValueTable::Popped KeyValueTable::queue_pop(const std::string& key) {
  const auto entry = queues_.find(key);
  if (entry == queues_.end()) return {};
  std::deque<std::string>& queue = entry->second;
  Popped popped{static_cast<std::int64_t>(queue.size()), std::move(queue.front())};
  queue.pop_front();
  bytes_ -= key.size() + popped.value.size() + kEntryBytes;
  if (queue.empty()) queues_.erase(entry);
  return popped;
}

std::int64_t KeyValueTable::queue_length(const std::string& key) const {
  const auto entry = queues_.find(key);
  return entry == queues_.end() ? 0 : static_cast<std::int64_t>(entry->second.size());
}

std::vector<StoreClientId> KeyValueTable::take_released() { return std::exchange(released_, {}); }

}  // namespace lrun::launcher
