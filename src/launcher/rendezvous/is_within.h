#pragma once

namespace lrun {

inline bool is_within(int value, int least, int most) { return value >= least && value <= most; }

}  // namespace lrun
