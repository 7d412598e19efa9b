#include "runtime/checkpoint/share.h"

#include <ATen/ATen.h>
#include <lrun/error.h>

#include <algorithm>
#include <exception>

namespace lrun::detail {
namespace {

enum Outcome : std::int64_t { kNothing, kFound, kFailed };

constexpr std::size_t kMostAtOnce = std::size_t{64} << 20;  // bounds the extra memory on a device that holds the model

void broadcast(Session& session, at::Tensor& cpu) {
  at::Tensor moved = cpu.to(session.device());
  session.collectives().broadcast(moved, 0);
  if (!moved.is_same(cpu)) cpu.copy_(moved);
}

void broadcast_bytes(Session& session, std::string& bytes) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += kMostAtOnce) {
    const std::size_t size = std::min(kMostAtOnce, bytes.size() - begin);
    at::Tensor part = at::from_blob(bytes.data() + begin, {static_cast<std::int64_t>(size)}, at::kByte);
    broadcast(session, part);
  }
}

}  // namespace

std::optional<Shared> share_from_rank_zero(Session& session, const std::function<std::optional<Shared>()>& find) {
  Outcome outcome = kNothing;
  Shared shared;
  if (session.is_rank_zero()) {
    // The other ranks wait below, so a failure is sent to them, too.
    try {
      if (auto found = find()) {
        shared = *std::move(found);
        outcome = kFound;
      }
    } catch (const std::exception& error) {
      shared.bytes = error.what();
      outcome = kFailed;
    }
  }
  at::Tensor head = at::tensor({static_cast<std::int64_t>(outcome), static_cast<std::int64_t>(shared.number),
                                static_cast<std::int64_t>(shared.bytes.size())},
                               at::kLong);
  broadcast(session, head);
  const auto* numbers = head.const_data_ptr<std::int64_t>();
  shared.number = static_cast<std::uint64_t>(numbers[1]);
  shared.bytes.resize(static_cast<std::size_t>(numbers[2]));
  if (session.world_size() > 1) broadcast_bytes(session, shared.bytes);
  if (numbers[0] == kFailed) throw CheckpointError(shared.bytes);
  if (numbers[0] == kNothing) return std::nullopt;
  return shared;
}

}  // namespace lrun::detail
