#pragma once

#include <string>
#include <string_view>

#include "base/environment.h"
#include "report/message_sink.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// The name of the variable in which whoever started lrun says where it wants to read what went wrong.
inline constexpr const char* kErrorFileVariable = "TORCHELASTIC_ERROR_FILE";

/// Leaves the root cause of a failed run where TORCHELASTIC_ERROR_FILE of lrun's own environment points, as torchrun
/// does for the launcher or scheduler around it: the own error file of Verdict::failure() with the exit code, or what
/// is known, and in its message the rank that ended with 0 where one is to blame. Nothing where the variable is not set
/// or nobody is to blame (a run that was stopped).
/// \return what went wrong with it, for a warning; empty when nothing did.
std::string leave_error_file(const Environment& environment, const Verdict& verdict);

/// The same for an error of lrun itself.
std::string leave_error_file(const Environment& environment, std::string_view message);

/// The same, with the warning. The file is a service to the parent: a problem with it changes nothing else.
void leave_error_file(const Environment& environment, const Verdict& verdict, MessageSink& sink);
void leave_error_file(const Environment& environment, std::string_view message, MessageSink& sink);

}  // namespace lrun::launcher
