#include "run/verbose_log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include <utility>

namespace lrun::launcher {
namespace {

/// Passes every line to the writer of lrun's own lines: a sink that wrote to stderr itself would block on a stopped
/// terminal, and supervision with it.
class LineSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit LineSink(VerboseLog::Write write) : write_(std::move(write)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_(fmt::to_string(line));
  }
  void flush_() override {}

  VerboseLog::Write write_;
};

}  // namespace

struct VerboseLog::Implementation {
  explicit Implementation(Write write) : logger("lrun", std::make_shared<LineSink>(std::move(write))) {}

  spdlog::logger logger;
};

VerboseLog::VerboseLog(int verbosity, Write write) {
  if (verbosity <= 0) return;
  implementation_ = std::make_unique<Implementation>(std::move(write));
  implementation_->logger.set_pattern("lrun: %l: %H:%M:%S.%e: %v");
  implementation_->logger.set_level(verbosity == 1 ? spdlog::level::info : spdlog::level::debug);
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

}  // namespace lrun::launcher
