#pragma once

#include <lrun/lrun.h>
#include <torch/optim/sgd.h>

#include "dataset.h"
#include "network.h"
#include "progress.h"

namespace fashion_mnist {

using Loader = lrun::DataLoader<Dataset>;

/// One epoch over this rank's share of the images.
/// \return loss and images/s over all ranks; the accuracy is left at 0.
EpochResult train_epoch(lrun::Session& session, lrun::Model<Network>& model, Loader& loader,
                        lrun::Optimizer<torch::optim::SGD>& optimizer, ProgressBar& bar);

/// The share of images that the network classifies rightly, 0 to 1, over the images of all ranks.
double accuracy(lrun::Session& session, lrun::Model<Network>& model, Loader& loader);

}  // namespace fashion_mnist
