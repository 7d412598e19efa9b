#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace lrun {

/// What is watched while a wrapped model trains, because training goes wrong there without an error. The same on all
/// ranks.
///
/// A step   is a backward() that averages gradients: that of train_step(), the program's own over the outputs of a
///          wrapped module, a join's. When a collective operation of a step fails, the error says which step it was,
///          and that a rank that has left ran fewer.
/// Cost     by default one all_gather of 16 bytes in each of the first three steps and in every 500th, in which each
///          rank also reads its parameters once: on x86 CPUs no more than a thousandth of the time of a step, on
///          average. On a GPU the parameters are copied to the CPU in those steps.
/// Limits   in a world of one only parameters without a gradient are told of, and not where the program neither calls
///          train_step() nor DistributedDataParallel::forward().
struct GuardOptions {
  /// Are the parameters bitwise the same on all ranks, after the first update and then every so many steps? A
  /// difference of more than a thousandth of a parameter's largest element is RankMismatch out of backward(), a
  /// smaller one (ranks on unlike processors) one warning; both name parameter and rank. 0: never.
  std::int64_t compare_parameters_every = 500;
  /// Do some ranks get identical batches in all of the first so many steps? One warning that names them. Without
  /// train_step() batches are not seen: then ranks are named whose gradients, before they are averaged, are bitwise
  /// the same. 0: never.
  std::int64_t compare_batches_for = 3;
  /// Which parameters got no gradient in the first so many steps? One warning that names them. 0: never.
  std::int64_t name_unused_after = 100;
  /// Who hears of warnings, on rank 0; called within backward(), so what it throws goes no further: the warning and
  /// the exception's text are then told on stderr. Default: stderr.
  std::function<void(const std::string&)> warn = nullptr;
};

}  // namespace lrun
