#pragma once

#include <string>
#include <string_view>

namespace lrun::inline core {

/// The usual name of a collective operation: 'all_reduce' for 'ncclAllReduce', 'c10d::ProcessGroup::allreduce(…)' and
/// 'all_reduce'. Empty when the function does not make ranks wait for each other. Pure.
std::string collective_name(std::string_view function);

/// The call in which ranks wait for each other before the first step.
inline constexpr std::string_view kInitProcessGroup = "init_process_group";

/// The first collective operation that a text names: 'all_reduce' in 'WorkNCCL(SeqNum=7, OpType=ALLREDUCE)'. Empty:
/// none.
std::string collective_in(std::string_view text);

/// 'a::b<c>::f(int)' → 'f': the name without namespace, arguments and template.
std::string_view plain_name(std::string_view function);

}  // namespace lrun::inline core
