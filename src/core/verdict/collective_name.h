#pragma once

#include <string>
#include <string_view>

namespace lrun::inline core {

/// 'allreduce' of 'ncclAllReduce', 'c10d::ProcessGroup::allreduce(…)' and 'all_reduce', as people call it:
/// 'all_reduce'. Empty when the function makes no rank wait for the others. Pure.
std::string collective_name(std::string_view function);

/// In which ranks meet, before there is a step.
inline constexpr std::string_view kMeeting = "init_process_group";

/// The first word of a text that is such a name: 'all_reduce' of 'WorkNCCL(SeqNum=7, OpType=ALLREDUCE)'. Empty: none.
std::string collective_in(std::string_view text);

/// 'a::b<c>::f(int)' → 'f': the name without namespace, arguments and template.
std::string_view plain_name(std::string_view function);

}  // namespace lrun::inline core
