#pragma once

#include "base/environment.h"
#include "cli/verb_table.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// Does what a verb asks for. \return the exit code.
/// \throws UserError  the run is unknown or not fit for it.
int run_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink);

/// `lrun status [RUN]`: 125 when a run did not answer.
int status_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink);

/// `lrun runs`.
int runs_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink);

/// `lrun again [RUN]`, of the last run without one. Returns only with --dry-run.
int again_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink);

/// `lrun report [RUN]`, of the last run without one.
int report_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink);

/// `lrun explain [RUN]`, of the last run without one.
int explain_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink);

/// `lrun logs [RUN] [RANK...]`, of the last run without one.
int logs_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink);

/// `lrun stack [RUN]`.
int stack_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink);

/// `lrun doctor`: 1 when something is wrong with the machine.
int doctor_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink);

}  // namespace lrun::launcher
