#pragma once

namespace lrun::inline core {

/// Which of a worker's two output streams.
enum class LogStream { kOut, kErr };
inline constexpr LogStream kLogStreams[] = {LogStream::kOut, LogStream::kErr};

}  // namespace lrun::inline core
