#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace lrun::test::stand_in {

/// The stand-in for GPUs has this many.
inline constexpr int kDevices = 4;

/// A function of CUDA or NCCL, by whom it was called and on which device: that of the calling thread.
struct CallSite {
  std::string function;
  std::string library;  ///< 'liblrun_cuda.so', 'libc10_cuda.so'
  int device = 0;

  bool operator==(const CallSite&) const = default;
  bool operator<(const CallSite& other) const {
    return std::tie(function, library, device) < std::tie(other.function, other.library, other.device);
  }
};

/// One call that does nothing and returns an error: the n-th at its site, from 1, since begin_run().
struct Fault {
  CallSite site;
  std::uint64_t call = 1;
  int error = 0;  ///< cudaError_t or ncclResult_t.
};

/// Objects that their owners have not given back: of events and groups those of liblrun_cuda.so.
struct Live {
  int events = 0;
  int communicators = 0;
  int open_groups = 0;

  bool operator==(const Live&) const = default;
};

/// Begins anew: no calls were made, no fault is injected, nothing was misused. From now on every piece of work,
/// every job of NCCL and every call takes a random time of up to `longest_delay`.
void begin_run(std::uint64_t seed, std::chrono::microseconds longest_delay);

void inject(const Fault& fault);
/// Whether the injected fault has happened.
bool was_injected();

/// From now on every call on the device fails, and its work does not run: what a kernel leaves that read outside its
/// memory. Until begin_run().
void break_device(int device, int cuda_error);

/// All calls since begin_run(), by site.
std::map<CallSite, std::uint64_t> calls();

Live live();

/// Mistakes that no program may make (machine.h, communicators.h), in the order in which they were noticed; forgets
/// them.
std::vector<std::string> take_misuse();

// ---- for the libraries of the stand-in ----

void report_misuse(const std::string& what);
/// Notes a call, and takes a random time. \param caller  an address in the calling code. \return  the injected error,
/// or 0.
int enter_call(const char* function, const void* caller);
/// 'libc10_cuda.so', of the code at an address.
std::string library_of(const void* caller);
/// Up to the longest delay of the run.
std::chrono::microseconds random_delay();
/// A choice between equals.
bool toss();
/// How often begin_run() was called.
std::uint64_t number_of_run();
/// 0, or the error of break_device().
int error_of_device(int device);
void count_communicators(int change);
void count_groups(int change);
void count_events(int change);

}  // namespace lrun::test::stand_in
