#pragma once

#include <string>
#include <vector>

#include "base/duration.h"
#include "base/message.h"
#include "supervise/run_observer.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// The facts that the texts of a run need besides its endings.
struct RunFactsForText {
  Duration grace{0};
  std::string program;            ///< as the user typed it
  std::string logs;               ///< folder of the log files; empty without files
  std::string logs_host = {};     ///< where that is, when the text is read on another host; else empty
  std::string restarts;           ///< 'restarted twice'; empty without restarts
  std::string interpreter;        ///< of a script that cannot run: what its first line names
  std::string advice = {};        ///< what PROGRAM is that cannot run, and what to type instead; empty: not known
  std::string nearest_verb;       ///< of lrun's own, when PROGRAM is not there and is nearly one
  std::string nearest_file = {};  ///< where PROGRAM was looked for, when it is not there and is nearly called so
  std::string script = {};        ///< PROGRAM, where `program` is the Python that was to run it
  bool is_in_folder = false;      ///< a file of the program's name is there, and not on PATH
  std::string folder = {};        ///< of the workers on this node
  bool given_to_python = false;   ///< the interpreter was to run PROGRAM
  std::string python = {};        ///< the interpreter that runs PROGRAM; empty: lrun gave it to none
  bool asked_for_core = false;    ///< the user asked for core files
  std::string program_hint = {};  ///< about an option of lrun that PROGRAM got and refused, or about a PROGRAM that
                                  ///< starts ranks itself, where nothing better is known; empty: none
  std::string tool = {};          ///< a hint about a PROGRAM that could not start a script; empty: none
  std::string gave_up = {};       ///< where each rank gave up, if all did: 'rank 0 gave up at a.py:4; …'; else empty
  std::string core_dump;  ///< text: where the core file of Verdict::failure() is, or why there is none; may be empty
  std::string node = {};  ///< where the program could not be started; empty: here
  bool cause_on_screen = false;     ///< stopping_text() has said verdict_line() a few lines ago
  bool evidence_on_screen = false;  ///< the culprit's decisive lines were shown a few lines ago
  bool sees_output = true;          ///< false: lrun does not see all that workers print
  bool colour = false;

  bool operator==(const RunFactsForText&) const = default;
};

/// 'node a: received SIGTERM', 'node b is lost: silence for 5s'.
std::string reason_text(const RunEnd& end);

/// Why the program cannot be executed on this node.
struct StartProblem {
  std::string what;  ///< 'cannot run './train': No such file or directory'
  std::string hint;  ///< empty: nothing is known that helps
};
StartProblem start_problem(const FailureRecord& record, const RunFactsForText& facts);

/// 'rank 1 failed: ValueError: boom at a.py:3 in step (exit 1)', 'rank 1 died of SIGSEGV (segmentation fault)'.
std::string cause_text(const FailureRecord& record);

/// The command or change that helps against this cause. Empty: none is known.
std::string hint_text(const FailureRecord& culprit, const RunFactsForText& facts);

/// The first line of a verdict: its cause, or why the run was stopped, and for whom it had waited then.
std::string verdict_line(const Verdict& verdict);

/// The line said when a run begins to stop: the cause as soon as it is seen, and what happens now.
std::string stopping_text(const RunEnd& end, const FailureRecord* cause, RunningWorkers others,
                          const RunFactsForText& facts);

/// The block at the very end of a run that did not succeed; empty for one that did. First the cause, then the decisive
/// lines of the culprit, each unless it is on the screen; then why another one that ended before it is not to blame,
/// where the others were seen; the culprit's process, the others and the logs in one line; and a hint when the cause is
/// known. At most 15 lines for any number of ranks.
std::string verdict_text(const Verdict& verdict, const RunFactsForText& facts);

}  // namespace lrun::launcher
