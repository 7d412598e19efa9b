// Strategy 'horovod': ddp with learning rates that are multiplied by the world size.
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <lrun/session.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session/banner.h"
#include "runtime/support/layout.h"

namespace lrun::detail {
namespace {

namespace nn = torch::nn;
namespace optim = torch::optim;
using test::Layout;
using test::run_layout;

using Sgd = Optimizer<optim::SGD>;

double rate_of(optim::Optimizer& optimizer, std::size_t group = 0) {
  return optimizer.param_groups().at(group).options().get_lr();
}

struct Training {
  explicit Training(Session& session, double rate = 0.1)
      : model(session.wrap(std::make_shared<nn::LinearImpl>(nn::LinearOptions(3, 1)))),
        optimizer(session.optimizer<optim::SGD>(model, optim::SGDOptions(rate).momentum(0.9))),
        rank(session.rank()) {
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : model.parameters()) parameter.fill_(0.5);
  }

  void steps(int begin, int end) {
    for (int step = begin; step < end; ++step) {
      optimizer.zero_grad();
      model.train_step(at::sin(at::arange(6, at::kFloat) * (step + 1 + rank)).view({2, 3}),
                       [](nn::LinearImpl& net, const at::Tensor& part) { return net.forward(part).square().mean(); });
      optimizer.step();
    }
  }
  [[nodiscard]] double rate() { return rate_of(*optimizer); }

  Model<nn::LinearImpl> model;
  Sgd optimizer;
  int rank;
};

/// Of each rank.
std::vector<double> rates_under(const Layout& layout, const std::function<void(Session&, Training&)>& then) {
  std::mutex mutex;
  std::vector<double> rates;
  run_layout(layout, [&](Session& session) {
    Training training(session);
    then(session, training);
    const std::lock_guard lock(mutex);
    rates.push_back(training.rate());
  });
  return rates;
}

TEST(Horovod, MultipliesTheLearningRateByTheWorldSize) {
  const auto nothing = [](Session&, Training&) {};
  EXPECT_EQ(rates_under({"horovod", 4}, nothing), std::vector<double>(4, 0.1 * 4));
  EXPECT_EQ(rates_under({"horovod", 2, 2}, nothing), std::vector<double>(4, 0.1 * 4));
  EXPECT_EQ(rates_under({"horovod", 1}, nothing), std::vector<double>(1, 0.1));
  for (const std::string strategy : {"ddp", "ddp_sharded"}) {
    EXPECT_EQ(rates_under({strategy, 2}, nothing), std::vector<double>(2, 0.1)) << strategy;
  }
  EXPECT_EQ(rates_under({"ddp2", 2, 2}, nothing), std::vector<double>(2, 0.1));
}

TEST(Horovod, TrainsAsDdpWithThatRate) {
  at::Tensor horovod;
  at::Tensor ddp;
  run_layout({"horovod", 2}, [&](Session& session) {
    EXPECT_EQ(session.strategy(), "horovod");
    Training training(session, 0.125);
    training.steps(0, 5);
    if (session.is_rank_zero()) horovod = training.model->weight.detach().clone();
  });
  run_layout({"ddp", 2}, [&](Session& session) {
    Training training(session, 0.25);
    training.steps(0, 5);
    if (session.is_rank_zero()) ddp = training.model->weight.detach().clone();
  });
  EXPECT_TRUE(horovod.equal(ddp)) << horovod << ddp;
}

TEST(Horovod, ScalesEachGroupAndThoseToCome) {
  run_layout({"horovod", 2}, [](Session& session) {
    auto model = session.wrap(nn::Linear(3, 1));
    std::vector<optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<at::Tensor>{model->weight});
    groups.emplace_back(std::vector<at::Tensor>{model->bias}, std::make_unique<optim::AdamOptions>(0.01));
    auto optimizer = session.optimizer<optim::Adam>(groups, optim::AdamOptions(0.1));
    (*optimizer).add_param_group(std::vector<at::Tensor>{at::ones({1}).set_requires_grad(true)});
    EXPECT_EQ(rate_of(*optimizer, 0), 0.2);
    EXPECT_EQ(rate_of(*optimizer, 1), 0.02);
    EXPECT_EQ(rate_of(*optimizer, 2), 0.2);
  });
}

TEST(Horovod, LeavesTheRateToProgramsThatScaleItThemselves) {
  test::run_sessions(
      2, [](Session& session) { EXPECT_EQ(Training(session).rate(), 0.1); },
      [](int) { return SessionOptions{.strategy = "horovod", .scale_learning_rate = false, .banner = false}; });
}

TEST(Horovod, LetsSchedulersGoOnFromTheScaledRate) {
  const auto rates = rates_under({"horovod", 2}, [](Session&, Training& training) {
    optim::StepLR scheduler(*training.optimizer, 2, 0.5);
    for (int epoch = 0; epoch < 5; ++epoch) scheduler.step();  // its first does nothing
  });
  EXPECT_EQ(rates, std::vector<double>(2, 0.2 / 4));
}

/// How a program writes and reads the optimizer: through lrun's, or torch's own below it.
struct Way {
  std::string name;
  std::function<void(Sgd&, std::ostream&)> save;
  std::function<void(Sgd&, std::istream&)> load;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"lrun's", [](Sgd& optimizer, std::ostream& stream) { torch::save(optimizer, stream); },
       [](Sgd& optimizer, std::istream& stream) { torch::load(optimizer, stream); }},
      {"torch's",
       [](Sgd& optimizer, std::ostream& stream) {
         const auto whole = optimizer.whole_state();
         torch::save(static_cast<const optim::Optimizer&>(*optimizer), stream);
       },
       [](Sgd& optimizer, std::istream& stream) { torch::load(static_cast<optim::Optimizer&>(*optimizer), stream); }}};
  return all;
}

/// Of rank 0, after three steps and a scheduler's halving.
std::string archive_of(const Layout& layout, const Way& way) {
  std::ostringstream archive;
  run_layout(layout, [&](Session& session) {
    Training training(session);
    training.steps(0, 3);
    optim::StepLR scheduler(*training.optimizer, 1, 0.5);
    for (int epoch = 0; epoch < 2; ++epoch) scheduler.step();  // its first does nothing
    std::ostringstream other;
    way.save(training.optimizer, session.is_rank_zero() ? archive : other);
  });
  return archive.str();
}

TEST(Horovod, ScalesTheRateOfACheckpointForItsOwnWorldAndOnce) {
  for (const Way& saved : ways()) {
    for (const Way& loaded : ways()) {
      const auto rate_after = [&](const Layout& before, const Layout& now) {
        const std::string archive = archive_of(before, saved);
        const auto rates = rates_under(now, [&](Session&, Training& training) {
          std::istringstream stream(archive);
          loaded.load(training.optimizer, stream);
          training.steps(3, 5);
        });
        for (const double rate : rates) EXPECT_EQ(rate, rates.front());
        return rates.front();
      };
      const std::string who = "saved by " + saved.name + " and loaded by " + loaded.name;
      // One rank is the first to load: how LibTorch guards what it makes then is invisible to ThreadSanitizer.
      EXPECT_DOUBLE_EQ(rate_after({"horovod", 4}, {"horovod", 1}), 0.05) << who;
      EXPECT_EQ(rate_after({"horovod", 3}, {"horovod", 3}), 0.1 * 3 * 0.5) << who;
      EXPECT_DOUBLE_EQ(rate_after({"horovod", 2}, {"horovod", 4}), 0.2) << who;
      EXPECT_DOUBLE_EQ(rate_after({"horovod", 4}, {"horovod", 3}), 0.15) << who;
      EXPECT_DOUBLE_EQ(rate_after({"horovod", 4}, {"ddp", 2}), 0.05) << who;
      EXPECT_DOUBLE_EQ(rate_after({"horovod", 4}, {"ddp_sharded", 2}), 0.05) << who;
      EXPECT_DOUBLE_EQ(rate_after({"ddp", 2}, {"horovod", 2}), 0.1) << who;
    }
  }
}

TEST(Horovod, GoesOnBitForBitFromACheckpoint) {
  const auto weight_after = [](bool resumes) {
    at::Tensor weight;
    run_layout({"horovod", 3}, [&](Session& session) {
      Training training(session);
      training.steps(0, 3);
      if (resumes) {
        std::stringstream stream;
        torch::save(training.optimizer, stream);
        auto again = session.optimizer<optim::SGD>(training.model, optim::SGDOptions(0.1).momentum(0.9));
        torch::load(again, stream);
        training.optimizer = std::move(again);
      }
      training.steps(3, 6);
      if (session.is_rank_zero()) weight = training.model->weight.detach().clone();
    });
    return weight;
  };
  EXPECT_TRUE(weight_after(true).equal(weight_after(false)));
}

struct WithoutRate : optim::OptimizerCloneableOptions<WithoutRate> {};

struct OwnOptimizer : optim::Optimizer {
  OwnOptimizer(std::vector<at::Tensor> parameters, const WithoutRate& options)
      : optim::Optimizer(std::move(parameters), std::make_unique<WithoutRate>(options)) {}
  at::Tensor step(LossClosure) override { return {}; }
};

TEST(Horovod, RefusesAnOptimizerThatHidesItsRate) {
  run_layout({"horovod", 2}, [](Session& session) {
    auto model = session.wrap(nn::Linear(3, 1));
    try {
      auto optimizer = session.optimizer<OwnOptimizer>(model, WithoutRate());
      ADD_FAILURE() << "accepted";
    } catch (const Unsupported& error) {
      EXPECT_STREQ(error.what(),
                   "the options of this optimizer do not override get_lr() and set_lr(), and strategy 'horovod' scales "
                   "the learning rate: override them, or set SessionOptions::scale_learning_rate to false");
    }
  });
  run_layout({"ddp", 2}, [](Session& session) {
    auto model = session.wrap(nn::Linear(3, 1));
    EXPECT_NO_THROW(auto optimizer = session.optimizer<OwnOptimizer>(model, WithoutRate()));
  });
}

TEST(Horovod, SaysFromWhatToWhat) {
  EXPECT_EQ(describe_learning_rates({0.1, 0.1}, {0.4, 0.4}, 4),
            "lrun: learning rate 0.1 becomes 0.4 (strategy horovod: x 4 ranks, the linear rule; "
            "SessionOptions::scale_learning_rate = false leaves it)");
  EXPECT_EQ(describe_learning_rates({0.1, 0.001}, {0.4, 0.004}, 4),
            "lrun: learning rates 0.1, 0.001 become 0.4, 0.004 (strategy horovod: x 4 ranks, the linear rule; "
            "SessionOptions::scale_learning_rate = false leaves it)");
  EXPECT_EQ(describe_loaded_rates({0.4}, {0.2}, 4, 2),
            "lrun: learning rate 0.4 of the checkpoint, for 4 ranks, becomes "
            "0.2 for 2");
  EXPECT_EQ(describe_batch_size(7, 8, 1, true),
            "lrun: effective batch size 56 (7 samples x 8 ranks); session.optimizer() scales a learning rate tuned "
            "for batch 7 by 8");
}

TEST(Horovod, SaysItOnceAndOnRankZero) {
  testing::internal::CaptureStderr();
  test::run_sessions(
      2, [](Session& session) { (void)Training(session); }, [](int) { return SessionOptions{.strategy = "horovod"}; });
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string line = "lrun: learning rate 0.1 becomes 0.2 (strategy horovod: x 2 ranks";
  const auto first = text.find(line);
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find(line, first + 1), std::string::npos) << text;
  EXPECT_EQ(text.find("lrun: horovod over threads, 2 ranks on 1 node"), 0U) << text;
}

}  // namespace
}  // namespace lrun::detail
