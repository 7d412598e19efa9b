#pragma once

namespace lrun::inline core {

/// From now on this is what takes_colour() says of every descriptor: somebody else shows what is written there.
void decide_colour(bool colour);

}  // namespace lrun::inline core
