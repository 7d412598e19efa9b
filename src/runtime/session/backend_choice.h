#pragma once

#include <c10/core/Device.h>
#include <lrun/session.h>
#include <lrun/world.h>

#include <string>

namespace lrun::detail {

/// The backend of a session's group: the program's, else the launcher's, else nccl where several ranks have GPUs. A
/// rank that is alone has no store, so that a backend which needs one becomes 'single'. Empty or 'auto':
/// make_collectives() takes the best one.
std::string choose_session_backend(const World& world, const SessionOptions& options, at::Device device);

}  // namespace lrun::detail
