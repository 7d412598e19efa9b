#include "faults/settings.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace lrun::test {

Settings& settings() {
  static Settings all{.seed = std::random_device{}()};
  return all;
}

bool take(const std::string& word) {
  const auto equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (value.empty() || value.find_first_not_of("0123456789") != std::string::npos) return false;
  if (name == "--seed") {
    settings().seed = std::stoull(value);
    return true;
  }
  const std::map<std::string, int*> numbers{{"--runs", &settings().runs},
                                            {"--launches", &settings().launches},
                                            {"--only", &settings().only},
                                            {"--at-once", &settings().at_once}};
  const auto found = numbers.find(name);
  if (found == numbers.end()) return false;
  *found->second = std::stoi(value);
  return true;
}

void for_each_number(int count, const std::function<void(int)>& one) {
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < std::min(settings().at_once, count); ++i) {
    threads.emplace_back([&] {
      for (int number = next++; number < count; number = next++) one(number);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace lrun::test
