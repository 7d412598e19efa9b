#pragma once

#include <string>
#include <string_view>

#include "base/environment.h"
#include "report/message_sink.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// The variable with the path of the file in which the parent of lrun wants to read what went wrong.
inline constexpr const char* kErrorFileVariable = "TORCHELASTIC_ERROR_FILE";

/// Leaves the root cause of a failed run where TORCHELASTIC_ERROR_FILE of lrun's own environment points, as torchrun
/// does for the launcher or scheduler around it: the error file of Verdict::failure() with the exit code, or the known
/// facts, and in its message the rank that ended with 0 where one is to blame. Writes nothing where the variable is not
/// set, or no worker is to blame (a run that was stopped).
///
/// The file is a service to the parent: a problem with it is a warning and changes nothing else.
void leave_error_file(const Environment& environment, const Verdict& verdict, MessageSink& sink);

/// The same for an error of lrun itself.
void leave_error_file(const Environment& environment, std::string_view message, MessageSink& sink);

}  // namespace lrun::launcher
