#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "store/key_value_table.h"
#include "wire/store_protocol.h"

namespace lrun::launcher {

/// Why a client may not use so many bytes of memory, one line; empty: it may.
using WhyNoRoom = std::function<std::string(std::uint64_t bytes)>;

/// Executes one request of `client` on `table` and appends the answer to `answer` (some requests have none). Clients
/// that it released are in table.take_released().
///
/// \param why_no_room  asked before anything is written, and before a large answer or wait is kept; empty: no limit.
/// \return  why the connection must be closed (one line), or nothing. A refused request changes nothing.
[[nodiscard]] std::string handle_request(KeyValueTable& table, StoreClientId client, StoreRequest request,
                                         std::string& answer, const WhyNoRoom& why_no_room = {});

}  // namespace lrun::launcher
