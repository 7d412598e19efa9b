#include "commands/verbs.h"

#include "cli/help.h"
#include "commands/completion_script.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"

namespace lrun::launcher {

int run_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  if (request.help) return print_to_stdout(verb_help(request.kind), sink) ? 0 : kExitRefused;
  switch (request.kind) {
    case VerbRequest::Kind::kStatus:
      return status_verb(request, environment, sink);
    case VerbRequest::Kind::kLogs:
      return logs_verb(request, environment, sink);
    case VerbRequest::Kind::kRuns:
      return runs_verb(request, environment, sink);
    case VerbRequest::Kind::kReport:
      return report_verb(request, environment, sink);
    case VerbRequest::Kind::kExplain:
      return explain_verb(request, environment, sink);
    case VerbRequest::Kind::kAgain:
      return again_verb(request, environment, sink);
    case VerbRequest::Kind::kStack:
      return stack_verb(request, environment, sink);
    case VerbRequest::Kind::kDoctor:
      return doctor_verb(request, environment, sink);
    case VerbRequest::Kind::kCompletion:
      return print_to_stdout(completion_script(request.shell), sink) ? 0 : kExitRefused;
    case VerbRequest::Kind::kHelp:
      return print_to_stdout(request.flag != nullptr ? flag_help(*request.flag) : short_help(), sink) ? 0
                                                                                                      : kExitRefused;
  }
  return kExitRefused;
}

}  // namespace lrun::launcher
