#pragma once

#include <functional>
#include <string>
#include <vector>

#include "verdict/judge.h"

namespace lrun::launcher {

/// The end of a failed run as torchrun prints it (`--compat=torchrun`): every failure of this node, the first one as
/// root cause. Negative exit codes are signals. `records` are in the order in which the ends were seen; `account_of`
/// gives what a worker left in its error file, asked only where there is one. Empty: no worker failed by itself.
std::string torchrun_summary(const Verdict& verdict, const std::vector<FailureRecord>& records,
                             const std::string& program,
                             const std::function<std::string(const FailureRecord&)>& account_of);

}  // namespace lrun::launcher
