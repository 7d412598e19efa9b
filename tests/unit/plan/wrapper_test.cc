#include "plan/wrapper.h"

#include <gtest/gtest.h>

#include "plan/worker_command.h"
#include "planning.h"

namespace lrun::launcher {
namespace {

TEST(Wrapper, OfARankWinsOverTheOneOfAllAndTheLastOverTheFirst) {
  const std::vector<Wrapper> wrappers{
      {{"for-0"}, {{0, 0}}, ""}, {{"for-all"}, {}, ""}, {{"for-some"}, {{0, 0}, {2, 3}}, ""}};
  EXPECT_EQ(wrapper_of(wrappers, 0)->words.front(), "for-some");
  EXPECT_EQ(wrapper_of(wrappers, 1)->words.front(), "for-all");
  EXPECT_EQ(wrapper_of(wrappers, 3)->words.front(), "for-some");
  EXPECT_EQ(wrapper_of({{{"for-0"}, {{0, 0}}, ""}}, 1), nullptr);
}

TEST(Wrapper, RanksAreNumbersAndRanges) {
  EXPECT_EQ(parse_ranks("0"), (Wrapper::Ranks{{0, 0}}));
  EXPECT_EQ(parse_ranks("0,4-7"), (Wrapper::Ranks{{0, 0}, {4, 7}}));
  for (const char* const text : {"", ",", "1,", "-1", "3-2", "a", "1-", "1--2", "99999999999"}) {
    EXPECT_EQ(parse_ranks(text), std::nullopt) << text;
  }
}

TEST(Wrapper, MacrosAreReplacedAndForeignOnesKept) {
  EXPECT_EQ(expand_wrapper({"-o", "%h.%r.%l.%a", "%%r", "%q{X}", "%"}, {5, 1, 2, "node-a"}),
            (std::vector<std::string>{"-o", "node-a.5.1.2", "%r", "%q{X}", "%"}));
}

TEST(Wrapper, StandsInFrontOfTheProgram) {
  LaunchRequest request = request_for("2");
  request.setup.wrappers = {{{"prof", "-o", "%r"}, {{1, 1}}, "--wrap@1"}};
  const LaunchPlan plan = plan_of(request, cpu_node());
  const NodePlan& node = plan.nodes.front();
  EXPECT_EQ(command_of(plan, node, node.workers[0], 0), (std::vector<std::string>{"./train", "--lr", "0.1"}));
  EXPECT_EQ(command_of(plan, node, node.workers[1], 0),
            (std::vector<std::string>{"prof", "-o", "1", "./train", "--lr", "0.1"}));
}

TEST(Wrapper, OfARankThatIsNotThereIsRefused) {
  LaunchRequest request = request_for("2");
  request.setup.wrappers = {{{"prof"}, {{0, 2}}, "--wrap@0-2"}};
  EXPECT_EQ(refusal_of([&] { plan_of(request, cpu_node()); }),
            "'--wrap@0-2': there is no rank 2 | this run has the ranks 0 to 1");
}

}  // namespace
}  // namespace lrun::launcher
