#include "run/waiting_record.h"

#include <system_error>
#include <utility>

namespace lrun::launcher {

WaitingRecord::WaitingRecord(EventLoop& loop, const std::filesystem::path& run, const std::string& part,
                             const std::string& run_name, ControlSocket::Answer answer)
    : directory_(run, part, run_name) {
  try {
    control_.emplace(loop, directory_.folder(), std::move(answer));
  } catch (const std::system_error&) {
    directory_.remove();
    throw;
  }
}

WaitingRecord::~WaitingRecord() {
  control_.reset();
  directory_.remove();
}

}  // namespace lrun::launcher
