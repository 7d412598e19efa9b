#pragma once

namespace lrun::test::stand_in {

/// Non-blocking communicators whose ranks are threads of this process, each with a device of its own. A communicator is
/// in progress until all ranks have come, its first operation until all ranks have called one, and its end until its
/// own operations have ended and, where one thread has all ranks, all are finalized; later operations may be in
/// progress for a while, too, and are in no stream before. Ranks that call different operations wait for ever. Misuse,
/// which is reported:
///   - a communicator that does not exist (any more), is in progress or being finalized;
///   - two threads in one communicator at a time;
///   - a communicator that is destroyed before it was finalized, or that would block;
///   - a stream of another device; two ranks of a communicator on one device;
///   - an end of a group that was not begun.
/// machine.h says what becomes of memory.

/// From now on the communicators on the device tell that they have lost a rank; what is in flight does not end.
void lose_connections(int device);

}  // namespace lrun::test::stand_in
