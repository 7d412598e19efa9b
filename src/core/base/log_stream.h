#pragma once

namespace lrun {

/// Which of a worker's two output streams.
enum class LogStream { kOut, kErr };

}  // namespace lrun
