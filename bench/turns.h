#pragma once

#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace lrun::bench {

/// The measurements of a rank, by name.
using Figures = std::map<std::string, double>;

/// A rank of a benchmark whose programs take turns, so that whatever else the machine does falls on all of them alike:
/// it sleeps until runtime.py writes an order, one line, to the stdin of every rank; then `measure` obeys it, and the
/// rank that `answers` prints one line, 'NAME VALUE NAME VALUE …'. Ends with stdin. \return the exit code.
template <class Measure>
int take_turns(bool answers, Measure measure) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream order(line);
    const Figures figures = measure(order);
    if (!answers) continue;
    for (const auto& [name, value] : figures) std::cout << name << ' ' << value << ' ';
    std::cout << std::endl;  // flushed: runtime.py waits for it
  }
  return 0;
}

/// \pre not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace lrun::bench
