// In: a tensor or bytes of this rank, of any size. Out: those of other ranks. Implements <lrun/exchange.h> by the
// operations of Collectives.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <lrun/collectives.h>
#include <lrun/error.h>
#include <lrun/exchange.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "runtime/collectives/common/row_sizes.h"
#include "runtime/collectives/common/rows_of_ranks.h"

namespace lrun {
namespace {

constexpr int kEveryRank = -1;

/// A rank has to know these of a tensor before it can receive it: dtype, number of dimensions, then their sizes.
constexpr std::int64_t kMostDimensions = 16;
constexpr std::int64_t kShapeNumbers = 2 + kMostDimensions;

struct Shape {
  at::ScalarType dtype = at::kByte;
  std::vector<std::int64_t> sizes;

  bool operator==(const Shape&) const = default;
};

at::Tensor encode_shape(const at::Tensor& tensor) {
  at::Tensor numbers = at::zeros({kShapeNumbers}, at::kLong);
  auto* out = numbers.mutable_data_ptr<std::int64_t>();
  *out++ = static_cast<std::int64_t>(tensor.scalar_type());
  *out++ = tensor.dim();
  std::ranges::copy(tensor.sizes(), out);
  return numbers;
}

Shape decode_shape(const at::Tensor& row) {
  const auto* numbers = row.const_data_ptr<std::int64_t>();
  return {static_cast<at::ScalarType>(numbers[0]), {numbers + 2, numbers + 2 + numbers[1]}};
}

std::string describe_shape(const Shape& shape) {
  std::string text = std::string(c10::toString(shape.dtype)) + " [";
  for (std::size_t i = 0; i < shape.sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape.sizes[i]);
  return text + "]";
}

/// The tensor's values in memory that can be sent.
at::Tensor sendable(const at::Tensor& tensor, const std::string& operation) {
  if (!tensor.defined()) throw std::invalid_argument(operation + ": the tensor is undefined");
  if (tensor.layout() != at::kStrided) throw std::invalid_argument(operation + ": the tensor is not dense");
  if (tensor.dim() > kMostDimensions) {
    throw std::invalid_argument(operation + ": a tensor of " + std::to_string(tensor.dim()) + " dimensions: at most " +
                                std::to_string(kMostDimensions));
  }
  return tensor.detach().contiguous().resolve_conj().resolve_neg();
}

void require_rank(const Collectives& collectives, int rank, const std::string& operation) {
  if (rank >= 0 && rank < collectives.world_size()) return;
  throw std::invalid_argument(operation + ": there is no rank " + std::to_string(rank) + " in a group of " +
                              std::to_string(collectives.world_size()));
}

void require_one_for_each_rank(const Collectives& collectives, const std::vector<at::Tensor>& tensors,
                               const std::string& operation) {
  if (tensors.size() == static_cast<std::size_t>(collectives.world_size())) return;
  throw std::invalid_argument(operation + ": the number of tensors is " + std::to_string(tensors.size()) +
                              ", and that of ranks " + std::to_string(collectives.world_size()));
}

std::string describe_receiver(std::int64_t receiver) {
  return receiver == kEveryRank ? "every rank" : "rank " + std::to_string(receiver);
}

/// The shapes of all ranks' tensors.
/// \throws CollectiveMismatch  they differ in more than dimension 0, or the receivers differ.
std::vector<Shape> agree_on_shapes(Collectives& collectives, const at::Tensor& mine, int receiver,
                                   const std::string& operation) {
  const at::Tensor all = at::empty({collectives.world_size(), kShapeNumbers + 1}, at::kLong);
  collectives.all_gather(all, at::cat({encode_shape(mine), at::full({1}, receiver, at::kLong)}));
  const auto numbers = all.accessor<std::int64_t, 2>();
  for (int rank = 1; rank < collectives.world_size(); ++rank) {
    if (numbers[rank][kShapeNumbers] == numbers[0][kShapeNumbers]) continue;
    throw CollectiveMismatch(operation + ": rank 0 gathers on " + describe_receiver(numbers[0][kShapeNumbers]) +
                             ", rank " + std::to_string(rank) + " on " +
                             describe_receiver(numbers[rank][kShapeNumbers]) + ": give all ranks the same receiver");
  }
  std::vector<Shape> shapes;
  for (int rank = 0; rank < collectives.world_size(); ++rank) shapes.push_back(decode_shape(all[rank]));
  const auto but_for_rows = [](Shape shape) {
    if (!shape.sizes.empty()) shape.sizes[0] = 0;
    return shape;
  };
  for (std::size_t rank = 1; rank < shapes.size(); ++rank) {
    if (but_for_rows(shapes[rank]) == but_for_rows(shapes[0])) continue;
    throw CollectiveMismatch(operation + ": rank 0 has " + describe_shape(shapes[0]) + ", rank " +
                             std::to_string(rank) + " has " + describe_shape(shapes[rank]) +
                             ": only dimension 0 may differ");
  }
  return shapes;
}

/// All ranks' tensors, on `receiver` or on every rank.
std::vector<at::Tensor> collect(Collectives& collectives, const at::Tensor& tensor, int receiver,
                                const std::string& operation) {
  const at::NoGradGuard no_grad;
  const at::Tensor mine = sendable(tensor, operation);
  const std::vector<Shape> shapes = agree_on_shapes(collectives, mine, receiver, operation);
  const bool keeps = receiver == kEveryRank || receiver == collectives.rank();
  std::vector<at::Tensor> tensors;
  if (receiver == kEveryRank && std::ranges::all_of(shapes, [&](const Shape& shape) { return shape == shapes[0]; })) {
    const at::Tensor rows = at::empty(detail::rows_of_ranks(collectives, mine.sizes()), mine.options());
    collectives.all_gather(rows, mine);
    for (int rank = 0; rank < collectives.world_size(); ++rank) tensors.push_back(rows[rank].clone());
    return tensors;
  }
  for (int rank = 0; rank < collectives.world_size(); ++rank) {
    const bool is_mine = rank == collectives.rank();
    at::Tensor part = is_mine ? mine : at::empty(shapes[static_cast<std::size_t>(rank)].sizes, mine.options());
    collectives.broadcast(part, rank);
    if (keeps) tensors.push_back(is_mine ? part.clone() : part);
  }
  return tensors;
}

std::int64_t bytes_of_shape(const Shape& shape) {
  return c10::multiply_integers(shape.sizes) * static_cast<std::int64_t>(c10::elementSize(shape.dtype));
}

/// The same memory.
at::Tensor bytes_of(const at::Tensor& tensor) { return tensor.flatten().view(at::kByte); }

at::Tensor bytes_of_string(std::string& text) {
  return at::from_blob(text.data(), {static_cast<std::int64_t>(text.size())}, at::kByte);
}

std::vector<std::string> collect_strings(Collectives& collectives, std::string bytes, int receiver,
                                         const std::string& operation) {
  std::vector<std::string> texts;
  for (const at::Tensor& part : collect(collectives, bytes_of_string(bytes), receiver, operation)) {
    texts.emplace_back(static_cast<const char*>(part.const_data_ptr()), part.nbytes());
  }
  return texts;
}

}  // namespace

std::vector<at::Tensor> all_gather(Collectives& collectives, const at::Tensor& tensor) {
  return collect(collectives, tensor, kEveryRank, "all_gather");
}

std::vector<at::Tensor> gather(Collectives& collectives, const at::Tensor& tensor, int rank) {
  require_rank(collectives, rank, "gather");
  return collect(collectives, tensor, rank, "gather");
}

at::Tensor scatter(Collectives& collectives, const std::vector<at::Tensor>& tensors, int root, at::Device device) {
  const at::NoGradGuard no_grad;
  require_rank(collectives, root, "scatter");
  const bool is_root = root == collectives.rank();
  const auto world_size = static_cast<std::size_t>(collectives.world_size());
  std::vector<at::Tensor> parts(world_size);
  at::Tensor shapes = at::zeros({collectives.world_size(), kShapeNumbers}, at::kLong);
  if (is_root) {
    require_one_for_each_rank(collectives, tensors, "scatter");
    for (std::size_t rank = 0; rank < world_size; ++rank) {
      parts[rank] = sendable(tensors[rank], "scatter");
      shapes[static_cast<std::int64_t>(rank)].copy_(encode_shape(parts[rank]));
    }
  }
  collectives.broadcast(shapes, root);
  at::Tensor mine;
  for (int rank = 0; rank < collectives.world_size(); ++rank) {
    at::Tensor& part = parts[static_cast<std::size_t>(rank)];
    if (!is_root) {
      const Shape shape = decode_shape(shapes[rank]);
      part = at::empty(shape.sizes, at::TensorOptions().dtype(shape.dtype).device(device));
    }
    collectives.broadcast(part, root);
    if (rank == collectives.rank()) mine = is_root ? part.clone() : part;
    part.reset();  // a rank holds its own and one more
  }
  return mine;
}

std::vector<at::Tensor> all_to_all(Collectives& collectives, const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  require_one_for_each_rank(collectives, tensors, "all_to_all");
  const std::int64_t world_size = collectives.world_size();
  std::vector<at::Tensor> parts;
  const at::Tensor shapes = at::zeros({world_size, kShapeNumbers}, at::kLong);
  detail::RowSizes sizes;
  std::int64_t bytes_sent = 0;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor part = sendable(tensor, "all_to_all");
    if (tensor.device() != tensors[0].device()) {
      throw std::invalid_argument("all_to_all: tensors on " + tensors[0].device().str() + " and on " +
                                  tensor.device().str() + ": put them on one device");
    }
    shapes[static_cast<std::int64_t>(parts.size())].copy_(encode_shape(part));
    sizes.sends.push_back(static_cast<std::int64_t>(part.nbytes()));
    bytes_sent += sizes.sends.back();
    parts.push_back(bytes_of(part));
  }
  const at::Tensor theirs = at::empty_like(shapes);
  collectives.all_to_all(theirs, shapes);
  at::Tensor longest = at::full({1}, *std::ranges::max_element(sizes.sends), at::kLong);
  collectives.all_reduce(longest, ReduceOp::kMax)->wait();
  sizes.longest = {longest.item<std::int64_t>()};
  std::vector<at::Tensor> results;
  std::int64_t bytes_received = 0;
  for (std::int64_t rank = 0; rank < world_size; ++rank) {
    const Shape shape = decode_shape(theirs[rank]);
    sizes.receives.push_back(bytes_of_shape(shape));
    bytes_received += sizes.receives.back();
    results.push_back(at::empty(shape.sizes, tensors[0].options().dtype(shape.dtype)));
  }
  const at::Tensor sent = at::empty({bytes_sent}, parts[0].options());
  const at::Tensor received = at::empty({bytes_received}, parts[0].options());
  const std::vector<at::Tensor> outgoing = sent.split_with_sizes(sizes.sends);
  const std::vector<at::Tensor> incoming = received.split_with_sizes(sizes.receives);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) outgoing[rank].copy_(parts[rank]);
  sizes.move(collectives, received, sent);
  for (std::size_t rank = 0; rank < results.size(); ++rank) bytes_of(results[rank]).copy_(incoming[rank]);
  return results;
}

std::string broadcast(Collectives& collectives, std::string bytes, int root) {
  const at::NoGradGuard no_grad;
  const at::Tensor size = at::full({1}, static_cast<std::int64_t>(bytes.size()), at::kLong);
  collectives.broadcast(size, root);
  bytes.resize(static_cast<std::size_t>(size.item<std::int64_t>()));
  collectives.broadcast(bytes_of_string(bytes), root);
  return bytes;
}

std::vector<std::string> all_gather(Collectives& collectives, const std::string& bytes) {
  return collect_strings(collectives, bytes, kEveryRank, "all_gather");
}

std::vector<std::string> gather(Collectives& collectives, const std::string& bytes, int rank) {
  require_rank(collectives, rank, "gather");
  return collect_strings(collectives, bytes, rank, "gather");
}

}  // namespace lrun
