#include "base/user_error.h"

#include <utility>

namespace lrun::inline core {

UserError::UserError(const std::string& what, std::string hint) : std::runtime_error(what), hint_(std::move(hint)) {}

}  // namespace lrun::inline core
