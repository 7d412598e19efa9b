#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/stand_in/script.h"

namespace lrun::test::stand_in {

/// Runs with different delays; LRUN_SEED=7 in the environment repeats one.
std::vector<std::uint64_t> seeds();

/// Nothing was misused, and everything was given back.
void expect_order();

/// An error of every call of liblrun_cuda.so since begin_run(), one at a time. Of the calls that poll, which come as
/// often as chance wants, the first few. \param device  -1: on all of them.
std::vector<Fault> faults_of_all_calls(int device = -1);

std::string name_of(const Fault& fault);

/// The one error, after a run of the same program with it. A failure of some functions is no news for the caller: they
/// give back what nobody needs any more, or are called again. \param error  of the rank whose call failed; empty: it
/// did not notice, and its results are right.
void expect_name_of(const Fault& fault, const std::string& error);

}  // namespace lrun::test::stand_in
