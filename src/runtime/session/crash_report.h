#pragma once

namespace lrun::detail {

/// From now on this process reports a fault of its own (SIGSEGV, SIGBUS, SIGFPE, SIGILL) on stderr, in one line that
/// lrun's verdict reads: the address, and the places in the machine code as a file and an offset that addr2line takes.
/// It then ends by the signal as before, with the same core file. A signal that is handled already, by the program, a
/// sanitizer or an interpreter, is left alone, and a later handler replaces this one.
///
/// The report allocates nothing and takes no lock: it cannot hang. Callers are named where glibc finds their unwind
/// tables without a lock, too (2.35). Any thread; once is enough.
void report_faults();

}  // namespace lrun::detail
