#include "resume.h"

#include <ATen/Functions.h>

#include <cstring>
#include <exception>
#include <string>

#include "atomic_file.h"
#include "errors.h"

namespace fashion_mnist {
namespace {

constexpr std::int64_t kNone = -1;
constexpr std::int64_t kFailed = -2;

/// Only rank 0 has bytes to add, so the sum over the ranks is rank 0's.
std::string share(lrun::Session& session, const std::string& bytes, std::int64_t size) {
  torch::Tensor buffer = torch::zeros({size}, torch::kUInt8);
  if (session.is_rank_zero()) std::memcpy(buffer.mutable_data_ptr(), bytes.data(), bytes.size());
  buffer = session.all_reduce(buffer, lrun::ReduceOp::kSum).cpu();
  return {static_cast<const char*>(buffer.const_data_ptr()), static_cast<std::size_t>(size)};
}

}  // namespace

std::optional<Checkpoint> read_checkpoint(lrun::Session& session, const std::filesystem::path& path) {
  std::string bytes;
  std::string problem = "rank 0 cannot read the checkpoint";
  std::int64_t size = session.is_rank_zero() ? kNone : 0;
  if (session.is_rank_zero()) {
    // The other ranks wait below: they must hear of a failure, too.
    try {
      if (std::optional<std::string> content = read_file(path)) {
        bytes = *std::move(content);
        size = static_cast<std::int64_t>(bytes.size());
      }
    } catch (const std::exception& error) {
      size = kFailed;
      problem = error.what();
    }
  }
  const torch::Tensor sum = session.all_reduce(torch::tensor({size}, torch::kInt64), lrun::ReduceOp::kSum);
  size = sum.item<std::int64_t>();
  if (size == kNone) return std::nullopt;
  if (size == kFailed) throw DataError(problem);
  return Checkpoint(share(session, bytes, size), session.device());
}

}  // namespace fashion_mnist
