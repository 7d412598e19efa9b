#pragma once

#include <string>

#include "store/key_value_table.h"
#include "store/protocol.h"

namespace lrun {

/// Carries out one request of `client` on `table` and appends the answer to `answer` (some requests have none). Whom it
/// released is left in the table.
///
/// Returns why the connection must be closed (one line), or nothing. A refused request changes nothing.
[[nodiscard]] std::string handle_request(KeyValueTable& table, StoreClientId client, StoreRequest request,
                                         std::string& answer);

}  // namespace lrun
