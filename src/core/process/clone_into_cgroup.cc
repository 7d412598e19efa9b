#include "process/clone_into_cgroup.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define LRUN_NO_SANITIZE __attribute__((no_sanitize("address")))
#else
#define LRUN_NO_SANITIZE
#endif

namespace lrun::inline core {
namespace {

/// The child goes on behind the system call with an empty stack of its own. It must not touch a variable of this
/// function: the function to call and its argument are in registers. \return the pid or a negated errno.
LRUN_NO_SANITIZE long clone3(const clone_args& arguments, int (*main)(void*), void* argument) {
#if defined(__x86_64__)
  long result = SYS_clone3;
  register int (*child_main)(void*) __asm__("r8") = main;
  register void* child_argument __asm__("r9") = argument;
  __asm__ volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"  // the end of the chain of frames
      "movq %%r9, %%rdi\n\t"
      "callq *%%r8\n\t"
      "ud2\n"
      "1:"
      : "+a"(result)
      : "D"(&arguments), "S"(sizeof arguments), "r"(child_main), "r"(child_argument)
      : "rcx", "r11", "cc", "memory");
  return result;
#elif defined(__aarch64__)
  register long result __asm__("x0") = reinterpret_cast<long>(&arguments);
  register unsigned long size __asm__("x1") = sizeof arguments;
  register int (*child_main)(void*) __asm__("x2") = main;
  register void* child_argument __asm__("x3") = argument;
  register long number __asm__("x8") = SYS_clone3;
  __asm__ volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "mov x0, x3\n\t"
      "blr x2\n\t"
      "brk #1\n"
      "1:"
      : "+r"(result)
      : "r"(size), "r"(child_main), "r"(child_argument), "r"(number)
      : "cc", "memory");
  return result;
#else
  (void)arguments, (void)main, (void)argument;
  return -ENOSYS;
#endif
}

}  // namespace

pid_t clone_into_cgroup(int (*main)(void*), std::span<char> stack, int flags, void* argument, int& pidfd, int cgroup) {
  clone_args arguments{};
  arguments.flags = static_cast<__u64>(flags) | CLONE_PIDFD | CLONE_INTO_CGROUP;
  arguments.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  arguments.stack = reinterpret_cast<std::uintptr_t>(stack.data());
  arguments.stack_size = stack.size();
  arguments.cgroup = static_cast<__u64>(cgroup);
  const long result = clone3(arguments, main, argument);
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace lrun::inline core
