#include "inspect/stack_fold.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

using Frames = std::vector<StackFrame>;

StackSample at(int rank, char state, const std::string& call, Frames python, Frames native = {}) {
  return {.rank = rank,
          .pid = 100 + rank,
          .state = state,
          .system_call = call,
          .python = std::move(python),
          .native = std::move(native)};
}

TEST(StackFold, RanksInOneCollectiveAreTogetherWhateverTheyDoInside) {
  const Frames waiting{{"wait", "work.py:1"}, {"all_reduce", "distributed_c10d.py:3075"}, {"main", "train.py:40"}};
  const Frames spinning{{"all_reduce", "distributed_c10d.py:3090"}, {"main", "train.py:40"}};
  const Frames loading{{"load", "data.py:88"}, {"main", "train.py:38"}};
  std::vector<StackSample> samples{at(0, 'S', "futex", waiting), at(1, 'R', "", spinning), at(2, 'S', "read", loading),
                                   at(3, 'S', "poll", waiting)};
  samples[2].waits_for = "pipe:[42]";
  const std::vector<StackGroup> groups = fold_stacks(samples);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].ranks, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(groups[0].verb_all + " " + groups[0].place, "wait in all_reduce at train.py:40");
  EXPECT_TRUE(groups[0].waits_for_others);
  EXPECT_FALSE(groups[1].waits_for_others);
  EXPECT_EQ(groups[1].verb + " " + groups[1].place, "is in read() of a pipe, called from load (data.py:88)");
}

TEST(StackFold, TheSameCollectiveCalledFromElsewhereIsAnotherPlace) {
  const auto call = [](int rank, const std::string& line) {
    return at(rank, 'S', "futex", {{"all_reduce", "c10d.py:1"}, {"main", "train.py:" + line}});
  };
  const std::vector<StackGroup> groups = fold_stacks({call(0, "40"), call(1, "52"), call(2, "40")});
  ASSERT_EQ(groups.size(), 2U) << "ranks that disagree are the usual cause of a hang";
  EXPECT_EQ(groups[0].ranks, (std::vector<int>{0, 2}));
}

TEST(StackFold, ACollectiveIsCalledFromTheProgramsOwnSource) {
  const Frames installed{{"all_reduce", "distributed_c10d.py:3075", true},
                         {"wrapper", "c10d_logger.py:83", true},
                         {"step", "train.py:12"},
                         {"main", "train.py:40"}};
  EXPECT_EQ(fold_stacks({at(0, 'S', "futex", installed)}).front().place, "all_reduce at train.py:12");
  const Frames compiled{{"lrun::ShmCollectives::all_reduce(at::Tensor const&)", "shm_collectives.cc:80"},
                        {"lrun::Session::all_reduce(at::Tensor const&)", "session.cc:9"},
                        {"main", "train.cc:21"}};
  EXPECT_EQ(fold_stacks({at(0, 'S', "futex", {}, compiled)}).front().place, "all_reduce at train.cc:21");
}

TEST(StackFold, ACallOfTorchIsNamedAsTheProgramWroteIt) {
  const Frames group{{"wait", "store.py:9", true},
                     {"_store_based_barrier", "distributed_c10d.py:910", true},
                     {"new_group", "distributed_c10d.py:5100", true},
                     {"main", "train.py:4"}};
  EXPECT_EQ(fold_stacks({at(0, 'S', "futex", group)}).front().place, "new_group at train.py:4");
  const Frames send{{"send", "distributed_c10d.py:2629", true}, {"main", "train.py:7"}};
  EXPECT_TRUE(fold_stacks({at(0, 'S', "futex", send)}).front().waits_for_others);
  EXPECT_EQ(fold_stacks({at(0, 'S', "futex", send)}).front().place, "send at train.py:7");
}

TEST(StackFold, ARankThatRestsInItsBackwardPassWaitsForTheSumOfGradients) {
  const Frames backward{
      {"_engine_run_backward", "graph.py:869", true}, {"backward", "_tensor.py:600", true}, {"main", "train.py:16"}};
  EXPECT_EQ(fold_stacks({at(0, 'S', "futex", backward)}).front().place, "backward at train.py:16");
  EXPECT_FALSE(fold_stacks({at(0, 'R', "", backward)}).front().waits_for_others) << "it computes";
}

TEST(StackFold, NativeStacksNameTheProgramsOwnFunction) {
  const Frames stack{{"__futex_abstimed_wait_common", "libc.so.6"},
                     {"pthread_cond_wait", "libc.so.6"},
                     {"std::condition_variable::wait(std::unique_lock<std::mutex>&)", "libstdc++.so.6"},
                     {"Loader::next(int)", "train"},
                     {"main", "train"}};
  EXPECT_EQ(fold_stacks({at(0, 'S', "futex", {}, stack)}).front().place, "futex(), called from Loader::next() (train)");
  Frames reducing = stack;
  reducing[3].function = "lrun::ShmCollectives::all_reduce(at::Tensor const&)";
  EXPECT_EQ(fold_stacks({at(0, 'S', "futex", {}, reducing)}).front().place, "all_reduce at main (train)");
}

TEST(StackFold, NamesAWaitThatGoesOnAfterALook) {
  const Frames stack{{"??", "libc.so.6"}, {"clock_nanosleep", "libc.so.6"}, {"step(int)", "train"}};
  const std::vector<StackGroup> groups =
      fold_stacks({at(0, 'S', "clock_nanosleep", {}, stack), at(1, 'S', "restart_syscall", {}, stack)});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups.front().place, "clock_nanosleep(), called from step() (train)");
  EXPECT_EQ(fold_stacks({at(0, 'S', "restart_syscall", {{"wait", "train.py:3"}})}).front().place,
            "a wait with a limit, called from wait (train.py:3)");
}

TEST(StackFold, TheProgramsFunctionMayBeNamedLikeOneThatWaits) {
  for (const char* const name : {"poll_queue()", "sleep_until_ready()", "selection()", "syscall_loop"}) {
    const Frames stack{{"poll", "libc.so.6"}, {"in", "libc.so.6"}, {name, "train"}, {"main", "train"}};
    EXPECT_EQ(fold_stacks({at(0, 'S', "poll", {}, stack)}).front().place,
              "poll(), called from " + std::string(name) + " (train)");
  }
}

TEST(StackFold, FunctionsAreNamedWithoutTheirArguments) {
  const auto named = [](const std::string& function) {
    return fold_stacks({at(0, 'S', "read", {}, {{function, "train"}})}).front().place;
  };
  EXPECT_EQ(named("a::(anonymous namespace)::load(std::vector<int, std::allocator<int> > const&)"),
            "read(), called from a::load() (train)");
  EXPECT_EQ(named("std::pair<int, long> a::B<int>::load<char>(char, void (*)(int))"),
            "read(), called from a::B<int>::load() (train)");
  EXPECT_EQ(named("main::{lambda(int)#1}::operator()(int) const"),
            "read(), called from main::{lambda(int)#1}::operator() (train)");
  EXPECT_EQ(named("main"), "read(), called from main (train)");
  EXPECT_EQ(named("f("), "read(), called from f() (train)");
}

TEST(StackFold, ASumOfGradientsOfLiblrunIsACollectiveOperation) {
  const Frames stack{{"pthread_cond_wait", "libc.so.6"},
                     {"lrun::detail::WorkQueue::finish(lrun::detail::Task&)", "liblrun.so.0.2"},
                     {"lrun::detail::GradientBuckets::wait()", "liblrun.so.0.2"},
                     {"void torch::autograd::apply<int>()", "libtorch_cpu.so"},
                     {"at::Tensor::_backward() const", "libtorch_cpu.so"},
                     {"train_step(Batch const&)", "train"},
                     {"main", "train"}};
  const StackGroup group = fold_stacks({at(0, 'S', "futex", {}, stack)}).front();
  EXPECT_TRUE(group.waits_for_others);
  EXPECT_EQ(group.place, "all_reduce at train_step() (train)");
}

TEST(StackFold, SaysWhatIsKnownWithoutStacks) {
  const auto words = [](StackSample sample) {
    const StackGroup group = fold_stacks({std::move(sample)}).front();
    return group.place.empty() ? group.verb : group.verb + " " + group.place;
  };
  EXPECT_EQ(words(at(0, 0, "", {})), "has ended");
  EXPECT_EQ(words(at(0, 'Z', "", {})), "has ended");
  EXPECT_EQ(words(at(0, 'T', "read", {})), "is stopped");
  EXPECT_EQ(words(at(0, 'R', "", {})), "runs");
  EXPECT_EQ(words(at(0, 'R', "", {{"step", "train.py:3"}})), "runs step (train.py:3)");
  EXPECT_EQ(words(at(0, 'D', "fsync", {})), "is in fsync() (uninterruptible)");
  EXPECT_EQ(words(at(0, 'S', "", {})), "sleeps");
  StackSample channel = at(0, 'S', "", {});
  channel.wait_channel = "nfs_wait_bit";
  EXPECT_EQ(words(channel), "is in the kernel (nfs_wait_bit)");
}

}  // namespace
}  // namespace lrun::launcher
