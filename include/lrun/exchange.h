#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>

#include <string>
#include <vector>

/// Exchange of values whose size only their own rank knows, by the operations of Collectives.
///
///     const auto parts = lrun::all_gather(session.collectives(), predictions);  // (n, classes), n of each rank
///     const auto all = torch::cat(parts);
///     const auto config = lrun::broadcast(session.collectives(), session.is_rank_zero() ? read_file(path) : "", 0);
///
/// All of them are collective, with the order, deadline and failures of Collectives. Tensors may be on any device that
/// the group takes, and need not be contiguous. Results are new, contiguous and without gradients, each with its own
/// memory.
/// (all_gather_with_grad() is the one to differentiate through.)
///
/// Cost     sizes are exchanged first, in one short operation. Then one broadcast per rank moves the data: each rank
///          sends and receives the bytes of all of them, once. That is no more than the busiest rank has to receive in
///          any case, but ranks that need no part of the result do as much. all_gather() of equal shapes is one
///          all_gather and a copy. all_to_all() exchanges sizes twice; then each rank sends and receives its own parts
///          only. 'shm+gloo' pads them to the longest part of any rank.
/// Threads  as for operations of Collectives.
namespace lrun {

class Collectives;

/// Gives every rank the tensors of all ranks, in the order of ranks.
/// \param tensor  ranks may have different sizes in dimension 0, also 0. All else is equal: dtype, other dimensions.
/// \throws lrun::CollectiveMismatch  on all ranks, which can go on: dtypes or shapes do not fit; names two ranks.
/// \throws std::invalid_argument     more than 16 dimensions, or a tensor that is not dense.
[[nodiscard]] LRUN_EXPORT std::vector<at::Tensor> all_gather(Collectives& collectives, const at::Tensor& tensor);

/// Gives one rank the tensors of all ranks; the others get an empty vector.
/// \throws as all_gather(), also CollectiveMismatch  the ranks disagree on `rank`.
/// \throws std::invalid_argument                     `rank` is not in the group.
[[nodiscard]] LRUN_EXPORT std::vector<at::Tensor> gather(Collectives& collectives, const at::Tensor& tensor, int rank);

/// Gives each rank one of `root`'s tensors: tensors[r] to rank r.
/// \param tensors  one per rank, of any shapes and dtypes. Only root's count; others pass nothing ({}).
/// \param device   where a rank that is not root gets its tensor. Root gets a copy where its own is.
/// \throws std::invalid_argument  on root: not one tensor per rank, or as all_gather(); `root` is not in the group.
[[nodiscard]] LRUN_EXPORT at::Tensor scatter(Collectives& collectives, const std::vector<at::Tensor>& tensors, int root,
                                             at::Device device = at::kCPU);

/// Gives each rank one tensor of every rank: tensors[r] goes to rank r, and element r of the result comes from there.
///
///     // Each sample to the rank that has its expert.
///     const auto mine = torch::cat(lrun::all_to_all(*group, samples_by_rank));
///
/// \param tensors  one per rank, of any shapes and dtypes, on one device, which gets the result.
/// \throws std::invalid_argument  not one tensor per rank, on different devices, or as all_gather().
[[nodiscard]] LRUN_EXPORT std::vector<at::Tensor> all_to_all(Collectives& collectives,
                                                             const std::vector<at::Tensor>& tensors);

/// Gives every rank `root`'s bytes. Those of other ranks do not count.
[[nodiscard]] LRUN_EXPORT std::string broadcast(Collectives& collectives, std::string bytes, int root);

/// Gives every rank the bytes of all ranks, in the order of ranks.
[[nodiscard]] LRUN_EXPORT std::vector<std::string> all_gather(Collectives& collectives, const std::string& bytes);

/// Gives one rank the bytes of all ranks; the others get an empty vector.
/// \throws as gather() of tensors.
[[nodiscard]] LRUN_EXPORT std::vector<std::string> gather(Collectives& collectives, const std::string& bytes, int rank);

}  // namespace lrun
