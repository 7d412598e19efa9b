#pragma once

#include <cstddef>

namespace lrun::detail {

/// Locks one byte of the file for this process, until the process ends, or closes any descriptor of that file. Children
/// do not inherit it. \return  false when the machine refuses.
bool lock_byte(int fd, std::size_t offset) noexcept;

/// Whether another process has locked the byte, whatever its pid namespace; also true if the machine cannot answer.
bool is_byte_locked(int fd, std::size_t offset) noexcept;

}  // namespace lrun::detail
