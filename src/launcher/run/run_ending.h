#pragma once

#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "plan/launch_plan.h"
#include "report/message_sink.h"
#include "report/restart_text.h"
#include "report/verdict_text.h"
#include "run/run_record.h"

namespace lrun::launcher {

/// The outcome of a run, before it is written anywhere.
struct RunResult {
  Verdict verdict;
  std::vector<FailureRecord> records = {};  ///< of the last attempt
  RestartChoice::Kind last_choice = RestartChoice::Kind::kNone;
  bool cause_on_screen = false;  ///< as in RunFactsForText
  bool evidence_on_screen = false;
  std::filesystem::path logs = {};  ///< folder of the log files; empty: none was written
};

/// Writes how a run ended: the text for people, result.json, and the error file for the process that started lrun. One
/// thread.
class RunEnding {
 public:
  struct Facts {
    std::string program;      ///< as the user typed it
    std::string python = {};  ///< the interpreter that lrun gives it to; empty: none
    std::string folder = {};  ///< that the workers start in; empty: lrun's own
    std::string executable;   ///< path of the executable, as seen from lrun's folder
  };

  /// \param environment  lrun's own. Everything must outlive this.
  RunEnding(const LaunchPlan& plan, const Environment& environment, Facts facts, RunRecord& record, MessageSink& sink)
      : plan_(plan), environment_(environment), facts_(std::move(facts)), record_(record), sink_(sink) {}

  /// For the texts while the run goes on.
  [[nodiscard]] RunFactsForText text_facts(const std::filesystem::path& logs = {}) const;

  /// Writes result.json and the error file. \return the text that is to be printed last; may be empty.
  std::string write(const RunResult& result);
  /// The same of a run that could not start a worker. Prints the text, too.
  Verdict start_failed(const FailureRecord& record);
  /// lrun itself cannot go on: without a result the run would look as if its launcher had been killed.
  void launcher_failed(const std::exception& error, int restarts, const std::vector<FailureRecord>& records);

 private:
  void add_program_hints(const Verdict& verdict, RunFactsForText& facts) const;
  [[nodiscard]] std::string core_dump_of(const RunResult& result) const;
  void write_result(const Verdict& verdict, const std::vector<FailureRecord>& records, const std::string& text,
                    const RunFactsForText& facts);

  const LaunchPlan& plan_;
  const Environment& environment_;
  Facts facts_;
  RunRecord& record_;
  MessageSink& sink_;
};

/// How the job ended, for the launchers that it did not need; empty: it succeeded.
std::string job_result_text(const Verdict& verdict);

}  // namespace lrun::launcher
