// In: the values that an axis spans. Out: its steps and their names. Pure; the plots of the page use it.
#include "report/plot_axis.h"

#include <fmt/format.h>

namespace lrun::launcher {

double axis_step(double span, int most, double first) {
  double step = first;
  for (int i = 0; span / step >= most; ++i) step *= i % 3 == 1 ? 2.5 : 2;  // no function of libm: lrun needs only libc
  return step;
}

double time_step(double span_ms, int most) {
  constexpr double kSecond = 1000;
  constexpr double kMinute = 60 * kSecond;
  if (span_ms / (20 * kSecond) < most) return axis_step(span_ms, most);
  for (const double step :
       {30 * kSecond, kMinute, 2 * kMinute, 5 * kMinute, 10 * kMinute, 20 * kMinute, 30 * kMinute}) {
    if (span_ms / step < most) return step;
  }
  return axis_step(span_ms, most, 60 * kMinute);
}

std::string time_name(double ms, double step_ms) {
  if (step_ms < 1000) return fmt::format("{:.{}f} s", ms / 1000, step_ms < 10 ? 3 : step_ms < 100 ? 2 : 1);
  const auto seconds = (static_cast<long>(ms / 500) + 1) / 2;
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{}:{:02} min", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02} h", seconds / 3600, seconds / 60 % 60);
}

}  // namespace lrun::launcher
