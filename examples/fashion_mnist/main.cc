// Trains a convolutional network on Fashion-MNIST, on one device or on many:
//
//   fashion_mnist                          one rank
//   lrun --devices 2 fashion_mnist         two ranks, each with half of the images
//
// There is no rank and no device in the training: lrun::Session knows them.
#include <lrun/lrun.h>
#include <torch/utils.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <optional>

#include "dataset.h"
#include "errors.h"
#include "network.h"
#include "options.h"
#include "progress.h"
#include "training.h"
#include "training_state.h"

namespace fashion_mnist {
namespace {

void print_line(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);  // a pipe would keep it until the end
}

/// Where to go on: in the checkpoint that the launcher names (LRUN_RESUME), else in --checkpoint if --resume was given.
std::optional<TrainingState> resumed_state(lrun::Session& session, const Options& options) {
  const lrun::World& world = session.world();
  if (!options.resume && !world.resume) return std::nullopt;
  const auto path = world.resume_path.empty() ? options.checkpoint : std::filesystem::path(world.resume_path);
  if (path.empty()) return std::nullopt;
  const auto checkpoint = lrun::load_checkpoint(session, path);
  if (!checkpoint) return std::nullopt;
  return TrainingState(checkpoint->content, session.device());
}

void train(const Options& options) {
  // Before the ranks meet: a bad file is then one line and no lost peer.
  if (!options.checkpoint.empty()) lrun::require_checkpoint_path(options.checkpoint);
  const Dataset train_images(options.data, Part::kTrain, options.limit);
  const Dataset test_images(options.data, Part::kTest);

  lrun::Session session({.seed = options.seed});
  torch::manual_seed(session.seed());
  const auto train_loader = session.loader(train_images, {.batch_size = static_cast<std::size_t>(options.batch_size)});
  const auto test_loader =
      session.loader(test_images, {.batch_size = 500, .shuffle = false, .remainder = lrun::Remainder::kUneven});

  std::optional<TrainingState> checkpoint = resumed_state(session, options);
  const auto network = std::make_shared<Network>();
  if (checkpoint) checkpoint->load_into(*network);
  auto model = session.wrap(network);
  auto optimizer =
      session.optimizer<torch::optim::SGD>(model, torch::optim::SGDOptions(options.learning_rate).momentum(0.9));
  if (checkpoint) checkpoint->load_into(*optimizer);

  const std::int64_t done = checkpoint ? checkpoint->epoch() : 0;
  train_loader->set_epoch(static_cast<std::size_t>(done));
  std::optional<double> test_accuracy;
  ProgressBar bar(stderr, session.is_rank_zero());
  if (session.is_rank_zero()) {
    if (done > 0) print_line("resumed after epoch " + std::to_string(done));
    print_line(table_header());
  }
  for (std::int64_t epoch = done + 1; epoch <= options.epochs; ++epoch) {
    EpochResult result = train_epoch(session, model, *train_loader, optimizer, bar);
    test_accuracy = result.accuracy = accuracy(session, model, *test_loader);
    bar.clear();
    if (!options.checkpoint.empty()) {
      const auto whole = optimizer.whole_state();  // on every rank: under ddp_sharded each has a part of it
      if (session.is_rank_zero()) {
        lrun::write_checkpoint(options.checkpoint, pack_state(epoch, *network, *optimizer));
      }
    }
    if (session.is_rank_zero()) print_line(table_row(result));  // who reads it may rely on the checkpoint
  }

  if (!test_accuracy) test_accuracy = accuracy(session, model, *test_loader);  // resumed with nothing left to do
  if (session.is_rank_zero()) print_line(final_line(*test_accuracy));
}

}  // namespace
}  // namespace fashion_mnist

int main(int argc, char** argv) {
  using namespace fashion_mnist;
  try {
    const Options options = parse_options(std::span<const char* const>(argv + 1, static_cast<std::size_t>(argc - 1)));
    if (options.help) {
      std::fputs(help_text().c_str(), stdout);
      return 0;
    }
    train(options);
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "fashion_mnist: error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fashion_mnist: error: %s\n", error.what());
    return 1;
  }
}
