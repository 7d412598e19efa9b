#include "cli/verbose_log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace lrun {

struct VerboseLog::Implementation {
  spdlog::logger logger{"lrun", std::make_shared<spdlog::sinks::stderr_sink_st>()};
};

VerboseLog::VerboseLog(int verbosity) {
  if (verbosity <= 0) return;
  implementation_ = std::make_unique<Implementation>();
  implementation_->logger.set_pattern("lrun: %l: %H:%M:%S.%e: %v");
  implementation_->logger.set_level(verbosity == 1 ? spdlog::level::info : spdlog::level::debug);
  implementation_->logger.flush_on(spdlog::level::trace);
}

VerboseLog::~VerboseLog() = default;
VerboseLog::VerboseLog(VerboseLog&&) noexcept = default;
VerboseLog& VerboseLog::operator=(VerboseLog&&) noexcept = default;

void VerboseLog::info(std::string_view text) const {
  if (implementation_) implementation_->logger.info("{}", text);
}

void VerboseLog::debug(std::string_view text) const {
  if (implementation_) implementation_->logger.debug("{}", text);
}

}  // namespace lrun
