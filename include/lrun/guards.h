#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace lrun {

/// Checks against mistakes that spoil training without an error. The same options on all ranks.
///
/// A step   is a backward() that averages gradients: that of train_step(), the program's own backward() over the
///          outputs of a wrapped module, or a join's. If a collective operation of a step fails, the error says which
///          step it was, and whether a rank that left had run fewer steps.
/// Cost     by default one all_gather of 16 bytes in each of the first three steps and in every 500th step, in which
///          each rank also reads its parameters once: on x86 CPUs at most a thousandth of the time of a step on
///          average. On a GPU the parameters are copied to the CPU in those steps.
/// Limits   in a world of one only parameters without a gradient are reported, and only in programs that call
///          train_step() or DistributedDataParallel::forward().
struct GuardOptions {
  /// Compares the parameters of all ranks after the first update, and then every so many steps. A difference of more
  /// than a thousandth of a parameter's largest element makes backward() throw RankMismatch; a smaller difference
  /// (ranks on different processors) is one warning. Both name parameter and rank. 0: never.
  std::int64_t compare_parameters_every = 500;
  /// Warns once, with their numbers, about ranks that get identical batches in all of the first so many steps. Without
  /// train_step() lrun sees no batches, and compares the gradients before they are averaged. 0: never.
  std::int64_t compare_batches_for = 3;
  /// Warns once, with their names, about parameters that got no gradient in the first so many steps. 0: never.
  std::int64_t name_unused_after = 100;
  /// Receives warnings on rank 0. It is called within backward(): if it throws, the warning and the exception's text
  /// are printed on stderr instead. Default: stderr.
  std::function<void(const std::string&)> warn = nullptr;
};

}  // namespace lrun
