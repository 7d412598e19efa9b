// Gradients in half precision or through a hook on their way, unused parameters as errors, static graphs.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <lrun/gradient_sync.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/support/parameters.h"
#include "runtime/support/recording_collectives.h"
#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
namespace {

using test::expect_gradient;
using test::loss_with_gradient;
using test::named;
using test::parameter;
using test::run_ranks;

/// Different on every rank, of many sizes.
at::Tensor gradient_of(int rank, at::ScalarType dtype) {
  const auto index = at::arange(500, at::kDouble);
  return (at::sin(index * (1.1 + rank)) * at::exp(index * -0.02)).to(dtype);
}

struct WireCase {
  WireFormat format;
  at::ScalarType sent;
  double roundoff;  // half a unit in the last place
};

class Wire : public testing::TestWithParam<WireCase> {};

TEST_P(Wire, IsOffByTwoRoundingsAtMostAndTheSameOnAllRanks) {
  const auto [format, sent, roundoff] = GetParam();
  for (const int world_size : {2, 3, 4}) {
    for (const auto dtype : {at::kFloat, at::kDouble}) {
      at::Tensor mean = at::zeros({500}, at::kDouble);
      at::Tensor sizes = at::zeros({500}, at::kDouble);
      for (int rank = 0; rank < world_size; ++rank) {
        mean += gradient_of(rank, dtype).to(at::kDouble) / world_size;
        sizes += gradient_of(rank, dtype).to(at::kDouble).abs() / world_size;
      }
      std::mutex mutex;
      std::vector<at::Tensor> results;
      run_ranks(world_size, [&, format = format, sent = sent](int rank, Collectives& inner) {
        test::RecordingCollectives collectives(inner, [&](const std::string&, const at::Tensor& tensor) {
          EXPECT_EQ(tensor.scalar_type(), sent) << "more is sent than asked for";
        });
        const auto weight = parameter({500}, dtype);
        GradientSync sync(named({weight}), collectives, {.wire = format});
        (weight * gradient_of(rank, dtype)).sum().backward();
        const std::lock_guard lock(mutex);
        results.push_back(weight.grad().to(at::kDouble));
      });
      // Below the smallest normal number the step no longer shrinks.
      const at::Tensor bound = roundoff * (sizes * (1 + 1e-6) + mean.abs() * (1 + roundoff)) + 6e-8;
      for (const auto& result : results) {
        EXPECT_TRUE(result.equal(results[0]));
        EXPECT_TRUE(((result - mean).abs() <= bound).all().item<bool>())
            << "off by " << (result - mean).abs().max().item<double>();
        EXPECT_FALSE(result.equal(mean)) << "nothing was rounded";
      }
    }
  }
}

TEST_P(Wire, LeavesHalfPrecisionAsItIs) {
  const auto format = GetParam().format;
  const auto dtype = GetParam().sent == at::kHalf ? at::kBFloat16 : at::kHalf;
  run_ranks(2, [&](int rank, Collectives& collectives) {
    const auto weight = parameter({500}, dtype);
    const auto plain = parameter({500}, dtype);
    GradientSync sync(named({weight}), collectives, {.wire = format});
    GradientSync other(named({plain}), collectives);
    (weight * gradient_of(rank, dtype)).sum().backward();
    (plain * gradient_of(rank, dtype)).sum().backward();
    EXPECT_TRUE(weight.grad().equal(plain.grad()));
  });
}

TEST_P(Wire, KeepsUnusedParametersApart) {
  run_ranks(3, [&](int rank, Collectives& collectives) {
    const std::vector<at::Tensor> parameters = {parameter({5}), parameter({5}), parameter({5})};
    GradientSync sync(named(parameters), collectives, {.wire = GetParam().format});
    for (int step = 0; step < 3; ++step) {
      for (auto tensor : parameters) test::zero_grad_to_none(tensor);
      auto loss = loss_with_gradient(parameters[0], 3);
      if (rank == 1) loss = loss + loss_with_gradient(parameters[1], 6);
      loss.backward();
      expect_gradient(parameters[0], 3);
      expect_gradient(parameters[1], 2);
      EXPECT_FALSE(parameters[2].grad().defined());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Formats, Wire,
                         testing::Values(WireCase{WireFormat::kFloat16, at::kHalf, std::ldexp(1, -11)},
                                         WireCase{WireFormat::kBFloat16, at::kBFloat16, std::ldexp(1, -8)}),
                         [](const auto& test_case) { return std::string(c10::toString(test_case.param.sent)); });

/// An average in two steps, of which this rank does the second when it waits.
class SumThenDivide final : public CollectiveWork {
 public:
  SumThenDivide(Collectives& collectives, at::Tensor buffer)
      : work_(collectives.all_reduce(buffer, ReduceOp::kSum)),
        buffer_(std::move(buffer)),
        ranks_(collectives.world_size()) {}
  [[nodiscard]] bool done() const override { return work_->done(); }
  void wait() override {
    work_->wait();
    buffer_.div_(ranks_);
  }

 private:
  std::unique_ptr<CollectiveWork> work_;
  at::Tensor buffer_;
  int ranks_;
};

TEST(CommHook, AveragesInThePlaceOfAllReduce) {
  for (const auto format : {WireFormat::kSame, WireFormat::kBFloat16}) {
    for (const int world_size : {1, 2, 3}) {
      run_ranks(world_size, [&](int rank, Collectives& collectives) {
        const std::vector<at::Tensor> ours = {parameter({50}), parameter({7}), parameter({3})};
        const std::vector<at::Tensor> plain = {parameter({50}), parameter({7}), parameter({3})};
        auto options = test::kOneBucketEach;
        options.wire = format;
        GradientSync sync(named(ours), collectives, options);
        GradientSync other(named(plain), collectives, options);
        std::size_t calls = 0;
        sync.register_comm_hook([&](Collectives& group, const GradBucket& bucket) {
          EXPECT_EQ(bucket.index, calls++ % 3);
          EXPECT_EQ(bucket.buffer.scalar_type(), format == WireFormat::kSame ? at::kFloat : at::kBFloat16);
          return std::make_unique<SumThenDivide>(group, bucket.buffer);
        });
        for (int step = 0; step < 3; ++step) {
          for (const auto& parameters : {ours, plain}) {
            for (auto tensor : parameters) test::zero_grad_to_none(tensor);
            auto loss = loss_with_gradient(parameters[0], 4 * (rank + 1));
            if (rank == 0) loss = loss + loss_with_gradient(parameters[1], 8);  // the last is never used
            loss.backward();
          }
          EXPECT_TRUE(ours[0].grad().allclose(plain[0].grad(), 1e-2));
          EXPECT_TRUE(ours[1].grad().allclose(plain[1].grad(), 1e-2));
          EXPECT_FALSE(ours[2].grad().defined());
        }
        EXPECT_EQ(calls, world_size == 1 ? 0 : 9) << "buckets";
      });
    }
  }
}

TEST(CommHook, ChangesGradientsBeforeTheyAreAveraged) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    const auto weight = parameter({4});
    GradientSync sync(named({weight}), collectives);
    sync.register_comm_hook([](Collectives& group, const GradBucket& bucket) {
      bucket.buffer.clamp_(-1, 1);
      return group.all_reduce(bucket.buffer, ReduceOp::kAverage);
    });
    loss_with_gradient(weight, rank == 0 ? 0.5 : 1000).backward();
    expect_gradient(weight, 0.75);
    sync.register_comm_hook([](Collectives& group, const GradBucket& bucket) {
      group.broadcast(bucket.buffer, 1);
      return nullptr;
    });
    weight.mutable_grad().reset();
    loss_with_gradient(weight, rank).backward();
    expect_gradient(weight, 1);
    sync.register_comm_hook(nullptr);
    weight.mutable_grad().reset();
    loss_with_gradient(weight, rank).backward();
    expect_gradient(weight, 0.5);
  });
}

TEST(CommHook, ThrowsOutOfBackward) {
  const auto failures = test::run_ranks_and_catch(2, [](int rank, Collectives& collectives) {
    const auto weight = parameter({4});
    GradientSync sync(named({weight}), collectives);
    sync.register_comm_hook([rank](Collectives& group, const GradBucket& bucket) {
      if (rank == 1) throw std::out_of_range("of the hook");
      return group.all_reduce(bucket.buffer, ReduceOp::kAverage);
    });
    loss_with_gradient(weight, 1).backward();
  });
  EXPECT_THROW(std::rethrow_exception(failures[0]), PeerLost);
  EXPECT_THROW(std::rethrow_exception(failures[1]), std::out_of_range);
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
    return "none";
  } catch (const std::logic_error& error) {
    return error.what();
  }
}

TEST(FindUnused, OffNamesOnAllRanksWhatOneRankDidNotUse) {
  run_ranks(3, [](int rank, Collectives& collectives) {
    const std::vector<at::Tensor> parameters = {parameter({2}), parameter({2})};
    GradientSync sync(named(parameters), collectives, {.find_unused = false});
    const auto both = [&] { return loss_with_gradient(parameters[0], 1) + loss_with_gradient(parameters[1], 1); };
    EXPECT_EQ(error_of([&] { both().backward(); }), "none");
    EXPECT_EQ(error_of([&] { (rank == 2 ? loss_with_gradient(parameters[1], 1) : both()).backward(); }), "none")
        << "what is kept from before is no missing gradient";
    for (auto tensor : parameters) test::zero_grad_to_none(tensor);
    EXPECT_EQ(error_of([&] { (rank == 2 ? loss_with_gradient(parameters[1], 1) : both()).backward(); }),
              "parameter 'p0' got no gradient on some rank in this backward(), and find_unused is off");
    EXPECT_EQ(error_of([&] { both().backward(); }), "none") << "the next backward() is as always";
  });
}

/// A chain early → late, and a parameter in the first bucket that some ranks do not use.
struct Chain {
  at::Tensor early = parameter({4});
  at::Tensor late = parameter({4});
  at::Tensor extra = parameter({4});
  [[nodiscard]] std::vector<NamedTensor> names() const { return named({early, late, extra}); }
};

/// How many buckets were on their way when backward() came between late and early, in each of three steps, on a rank
/// that does not use `extra`. Rank 0 does, so that its bucket is the first.
std::vector<int> buckets_in_flight(bool static_graph) {
  std::vector<int> counts;
  run_ranks(2, [&](int rank, Collectives& inner) {
    int posted = 0;
    test::RecordingCollectives collectives(inner, [&](const std::string& operation, const at::Tensor&) {
      if (operation == "all_reduce") ++posted;
    });
    const Chain chain;
    auto options = test::kOneBucketEach;
    options.static_graph = static_graph;
    GradientSync sync(chain.names(), collectives, options);
    for (int step = 0; step < 3; ++step) {
      for (auto tensor : {chain.early, chain.late, chain.extra}) test::zero_grad_to_none(tensor);
      posted = 0;
      const auto middle = chain.early * (rank + 1);
      middle.register_hook([&](const at::Tensor&) {
        if (rank == 1) counts.push_back(posted);
      });
      const auto output = middle * chain.late;
      (rank == 0 ? output * chain.extra : output).sum().backward();
      EXPECT_EQ(posted, 3) << "a bucket was left out";
      expect_gradient(chain.early, 1.5);
      expect_gradient(chain.late, 1.5);
      expect_gradient(chain.extra, 0.5);
    }
  });
  return counts;
}

TEST(StaticGraph, DoesNotWaitForWhatThisRankNeverUses) {
  EXPECT_EQ(buckets_in_flight(false), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(buckets_in_flight(true), (std::vector<int>{0, 2, 2}));
}

TEST(StaticGraph, RefusesAGraphThatChanges) {
  run_ranks(2, [](int, Collectives& collectives) {
    const Chain chain;
    GradientSync sync(chain.names(), collectives, {.static_graph = true});
    (chain.early * chain.late).sum().backward();
    EXPECT_EQ(error_of([&] { (chain.early * chain.late * chain.extra).sum().backward(); }),
              "parameter 'p2' got no gradient in the first backward() and gets one now: its graph is not static");
  });
}

TEST(ActiveRanks, AreWhatIsDividedBy) {
  run_ranks(4, [](int rank, Collectives& collectives) {
    const auto weight = parameter({3});
    GradientSync sync(named({weight}), collectives);
    sync.set_active_ranks(3);
    loss_with_gradient(weight, rank == 2 ? 0 : 6).backward();
    expect_gradient(weight, 6);
    EXPECT_THROW(sync.set_active_ranks(0), std::invalid_argument);
    EXPECT_THROW(sync.set_active_ranks(5), std::invalid_argument);
  });
}

}  // namespace
}  // namespace lrun::detail
