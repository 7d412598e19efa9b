#include "plan/run_id.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/whole_number.h"

namespace lrun::launcher {

std::string make_run_id() {
  using namespace std::chrono;
  const auto now = floor<seconds>(system_clock::now());
  const auto today = floor<days>(now);
  const year_month_day date(today);
  const hh_mm_ss time(now - today);
  // Not gmtime_r() or strftime(), which read the time zone's file even for UTC.
  std::string id = fmt::format("{:04}{:02}{:02}-{:02}{:02}{:02}-", static_cast<int>(date.year()),
                               static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                               time.hours().count(), time.minutes().count(), time.seconds().count());
  std::array<unsigned char, 6> random{};
  (void)::getrandom(random.data(), random.size(), GRND_NONBLOCK);
  constexpr std::string_view kLetters = "abcdefghijkmnpqrstuvwxyz23456789";
  for (const unsigned char byte : random) id += kLetters[byte % kLetters.size()];
  return id;
}

bool is_run_id(std::string_view name) {
  constexpr std::string_view kForm = "00000000-000000-xxxxxx";
  return name.size() == kForm.size() && std::equal(name.begin(), name.end(), kForm.begin(), [](char letter, char form) {
           const bool digit = letter >= '0' && letter <= '9';
           return form == '-' ? letter == '-' : digit || (form == 'x' && letter >= 'a' && letter <= 'z');
         });
}

std::int64_t time_of_run_id(std::string_view name) {
  if (!is_run_id(name)) return 0;
  const auto number = [&](std::size_t at, std::size_t count) {
    return whole_number<int>(name.substr(at, count)).value_or(0);
  };
  const auto part = [&](std::size_t at, std::size_t count) { return static_cast<unsigned>(number(at, count)); };
  using namespace std::chrono;
  const year_month_day date(year(number(0, 4)), month(part(4, 2)), day(part(6, 2)));
  if (!date.ok()) return 0;
  const auto time = sys_days(date) + hours(number(9, 2)) + minutes(number(11, 2)) + seconds(number(13, 2));
  return duration_cast<milliseconds>(time.time_since_epoch()).count();
}

}  // namespace lrun::launcher
