#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// Base64 of RFC 4648 with padding: any bytes as text.
[[nodiscard]] std::string to_base64(std::string_view bytes);

/// The bytes that `text` stands for; empty for what to_base64() does not write.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace lrun::launcher
