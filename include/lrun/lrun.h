#pragma once

/// Includes all of liblrun.
#include <lrun/all_gather_with_grad.h>
#include <lrun/batch.h>
#include <lrun/batch_size.h>
#include <lrun/checkpoint.h>
#include <lrun/clip_grad_norm.h>
#include <lrun/collectives.h>
#include <lrun/data_loader.h>
#include <lrun/device_transfer.h>
#include <lrun/distributed_data_parallel.h>
#include <lrun/distributed_sampler.h>
#include <lrun/error.h>
#include <lrun/evaluation.h>
#include <lrun/exchange.h>
#include <lrun/grad_scaler.h>
#include <lrun/gradient_sync.h>
#include <lrun/guards.h>
#include <lrun/join.h>
#include <lrun/launch.h>
#include <lrun/model.h>
#include <lrun/optimizer.h>
#include <lrun/replicas.h>
#include <lrun/session.h>
#include <lrun/strategy.h>
#include <lrun/sync_batch_norm.h>
#include <lrun/world.h>
