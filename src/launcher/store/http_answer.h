#pragma once

#include <string>
#include <string_view>

namespace lrun::launcher {

/// The bytes of an answer after which the connection is closed.
/// \param status   '200 OK'
/// \param headers  further ones, each with its CR LF
std::string http_answer(std::string_view status, std::string_view body = {}, std::string_view headers = {});

}  // namespace lrun::launcher
