#pragma once

#include <string>
#include <string_view>

#include "base/message.h"
#include "remote/node_frames.h"

namespace lrun {

/// From now on the words of this lrun go, as frames, to the one that started it on this host, which shows them once for
/// all hosts. \param fd  of a pipe that is always read; belongs to the process. \param colour  the other end's console
/// takes it.
void speak_through_head(int fd, bool colour);

/// Somebody else shows our words.
bool speaks_through_head();

/// Sends a frame; what cannot be sent is lost. Only after speak_through_head().
void tell_head(NodeFrame::Kind kind, std::string_view payload) noexcept;

/// Words about this node alone, of which the head shows the host: 'warning' and its text.
void tell_head(Severity severity, std::string_view text) noexcept;

/// What tell_head() sent, as the head shows it. Words without a severity stand as they are.
/// \param host  that said it; empty: this host, or all say the same.
std::string words_of_node(const std::string& payload, const std::string& host, bool colour);

}  // namespace lrun
