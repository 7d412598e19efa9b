#pragma once

#include <string_view>

namespace lrun::inline core {

/// True of a name as programs give it to what they rename once it is complete: 'x.tmp', 'x.ckpt.tmp-0',
/// 'tmp-checkpoint-5', 'x.new', 'x.part'. Case does not matter.
bool is_unfinished_name(std::string_view name);

}  // namespace lrun::inline core
