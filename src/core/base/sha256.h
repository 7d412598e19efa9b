#pragma once

#include <string>
#include <string_view>

namespace lrun::inline core {

/// SHA-256 (FIPS 180-4) of `bytes`: 32 raw bytes.
[[nodiscard]] std::string sha256(std::string_view bytes);

/// HMAC-SHA-256 (RFC 2104) of `message`: 32 raw bytes that cannot be made without `key`.
[[nodiscard]] std::string hmac_sha256(std::string_view key, std::string_view message);

/// Two lower-case digits a byte.
[[nodiscard]] std::string in_hexadecimal(std::string_view bytes);

/// Takes as long for a wrong first byte as for a wrong last one. Texts of unequal length are told apart at once.
[[nodiscard]] bool equal_in_constant_time(std::string_view first, std::string_view second) noexcept;

}  // namespace lrun::inline core
