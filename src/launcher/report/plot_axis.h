#pragma once

#include <string>

namespace lrun::launcher {

/// `first`, or 2, 5, 10, 20, … times that: the smallest with which `span` has fewer than `most` steps. Pure.
double axis_step(double span, int most, double first = 1);

/// The same for milliseconds, in whole seconds, minutes or hours.
double time_step(double span_ms, int most);

/// A time on an axis with these steps: '0.05 s', '20 s', '1:30 min', '2:05 h'.
std::string time_name(double ms, double step_ms);

}  // namespace lrun::launcher
