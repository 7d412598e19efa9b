// Output of other programs, of the kernel and of the files of a run: stacks, a Python's torch, status, events. Any
// bytes are accepted, the result is bounded, and its display is safe for a terminal and for a page.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/process_stat.h"
#include "inspect/python_answer.h"
#include "inspect/run_status.h"
#include "inspect/stack_parsers.h"
#include "inspect/system_call.h"
#include "report/doctor_text.h"
#include "report/stack_text.h"
#include "report/status_text.h"
#include "report/timeline.h"
#include "report/timeline_html.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_text(const std::string& text) {
  for (const char letter : text) check(letter == '\n' || letter == '\t' || static_cast<unsigned char>(letter) >= 0x20);
}

void look_at_stacks(std::string_view text) {
  lrun::launcher::StackSample sample{
      .rank = 0, .pid = 1, .command = std::string(text.substr(0, 16)), .state = 'S', .threads = 1};
  for (const auto parse :
       {lrun::launcher::parse_eu_stack, lrun::launcher::parse_gdb_backtrace, lrun::launcher::parse_py_spy}) {
    sample.native = parse(text);
    check(sample.native.size() <= 64);
    check_text(lrun::launcher::stack_text({sample}));
    sample.python = sample.native;
  }
}

void look_at_samples(std::string_view text) {
  (void)lrun::launcher::launcher_stacks_from_json(text);
  const auto samples = lrun::launcher::stack_samples_from_json(text);
  if (!samples) return;
  check_text(lrun::launcher::stack_text(*samples));
  const std::vector<lrun::RankPlace> places = lrun::launcher::places_of(lrun::launcher::fold_stacks(*samples));
  check(places.size() <= 8);
  check_text(lrun::describe_places(places));
}

void look_at_python(std::string_view text) {
  const auto python = lrun::launcher::parse_python_answer(text);
  if (!python) return;
  lrun::launcher::MachineFacts facts;
  facts.machine_gpus.gpus.resize(1);
  facts.driver.cuda = 12080;
  facts.python = *python;
  const std::vector<lrun::launcher::Finding> findings = lrun::launcher::judge_machine(facts);
  check_text(lrun::launcher::doctor_text(facts, findings, true));
  check_text(lrun::launcher::doctor_text(facts, {}, false));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  look_at_stacks(text);
  look_at_samples(text);
  look_at_python(text);
  (void)lrun::launcher::parse_system_call(text);
  (void)lrun::parse_process_stat(text);
  if (const auto status = lrun::launcher::run_status_from_json(text))
    check_text(lrun::launcher::status_text(*status, 0));
  if (const auto timeline = lrun::launcher::timeline_from_events(text)) {
    check_text(lrun::launcher::timeline_text(*timeline));
    check(lrun::launcher::timeline_html(*timeline, text).find("<script") == std::string::npos);
  }
  return 0;
}
