// Every message of another launcher is read or refused; one that was read is written as it came.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rendezvous/coordinator.h"
#include "rendezvous/handshake.h"
#include "rendezvous/message.h"
#include "verdict/job_verdict.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lrun;
  using namespace lrun::launcher;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);

  const SteadyTime now{};
  Coordinator coordinator({.merge = merge_reports}, now);
  for (const auto side : {Handshake::Side::kLauncher, Handshake::Side::kServer}) {
    Handshake open(side, "", "nonce");
    Handshake secret(side, "a secret that no input knows", "nonce");
    for (std::string_view left = bytes; !left.empty(); left.remove_prefix(std::min<std::size_t>(left.size(), 7))) {
      open.feed(left.substr(0, 7));
      secret.feed(left.substr(0, 7));
    }
    if (open.done() && !open.refusal().empty()) std::abort();
    if (secret.done()) std::abort();
  }

  LauncherMessageDecoder decoder(kMostBytesFromLauncher);
  decoder.feed(bytes);
  ConnectionId from = 1;
  while (const auto message = decoder.next()) {
    if (launcher_message_from_json(to_json(*message)) != message) std::abort();
    coordinator.received(from++ % 3 + 1, *message, now);
  }
  (void)coordinator.outbox().take_messages();

  if (const auto message = launcher_message_from_json(bytes)) {
    if (launcher_message_from_json(to_json(*message)) != message) std::abort();
  }
  if (const auto report = job_report_from_json(bytes)) {
    const Verdict verdict = judge_job(*report, 0, {});
    if (verdict.exit_code < 0 || verdict.others.total() < 0) std::abort();
    if (merge_reports({std::string(bytes)}).size() > kMostReportBytes) std::abort();
  }
  if (const auto notice = stop_notice_from_json(bytes)) {
    if (!stop_notice_from_json(to_json(*notice))) std::abort();
  }
  return 0;
}
