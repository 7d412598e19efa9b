#pragma once

namespace lrun::launcher {

inline bool is_within(int value, int least, int most) { return value >= least && value <= most; }

}  // namespace lrun::launcher
