#include "runtime/collectives/common/perform.h"

#include <cstddef>
#include <cstring>

#include "runtime/collectives/common/reduce.h"

namespace lrun::detail {
namespace {

const char* input_of(const std::optional<Post>& post) { return static_cast<const char*>(post->input.const_data_ptr()); }
char* output_of(const std::optional<Post>& post) { return static_cast<char*>(post->output.mutable_data_ptr()); }

/// One rank may pass the same memory as input and as its row of the output.
void copy(char* to, const char* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

void all_reduce(const std::vector<std::optional<Post>>& posts) {
  std::vector<const void*> sources;
  std::vector<void*> destinations;
  for (const auto& post : posts) {
    sources.push_back(input_of(post));
    destinations.push_back(output_of(post));
  }
  const Call& call = posts[0]->call;
  reduce(static_cast<at::ScalarType>(call.dtype), static_cast<ReduceOp>(call.op), sources, destinations, call.count);
}

void broadcast(const std::vector<std::optional<Post>>& posts) {
  const auto& root = posts[static_cast<std::size_t>(posts[0]->call.root)];
  for (const auto& post : posts) copy(output_of(post), input_of(root), root->input.nbytes());
}

void all_gather(const std::vector<std::optional<Post>>& posts) {
  const std::size_t bytes = posts[0]->input.nbytes();
  for (const auto& post : posts) {
    for (std::size_t row = 0; row < posts.size(); ++row)
      copy(output_of(post) + row * bytes, input_of(posts[row]), bytes);
  }
}

void reduce_scatter(const std::vector<std::optional<Post>>& posts) {
  const Call& call = posts[0]->call;
  for (std::size_t row = 0; row < posts.size(); ++row) {
    std::vector<const void*> sources;
    for (const auto& post : posts) sources.push_back(input_of(post) + row * posts[row]->output.nbytes());
    void* destination = output_of(posts[row]);
    reduce(static_cast<at::ScalarType>(call.dtype), static_cast<ReduceOp>(call.op), sources, {&destination, 1},
           call.count);
  }
}

void all_to_all(const std::vector<std::optional<Post>>& posts) {
  const auto element = static_cast<std::size_t>(posts[0]->input.element_size());
  std::vector<char*> places;
  for (const auto& post : posts) places.push_back(output_of(post));
  for (const auto& from : posts) {
    const char* row = input_of(from);
    for (std::size_t rank = 0; rank < posts.size(); ++rank) {
      const std::size_t bytes = static_cast<std::size_t>(from->rows.sends[rank]) * element;
      copy(places[rank], row, bytes);
      places[rank] += bytes;
      row += bytes;
    }
  }
}

}  // namespace

std::optional<Failure> find_mismatch(const std::vector<std::optional<Post>>& posts, std::uint64_t sequence,
                                     const std::vector<int>& ranks_above) {
  for (std::size_t rank = 1; rank < posts.size(); ++rank) {
    if (posts[rank]->call == posts[0]->call) continue;
    return Failure{Failure::Kind::kMismatch,
                   describe_mismatch(posts[0]->call, static_cast<int>(rank), posts[rank]->call, sequence, ranks_above)};
  }
  return std::nullopt;
}

void perform(const std::vector<std::optional<Post>>& posts) {
  switch (posts[0]->call.operation) {
    case Call::Operation::kAllReduce:
      return all_reduce(posts);
    case Call::Operation::kBroadcast:
      return broadcast(posts);
    case Call::Operation::kAllGather:
      return all_gather(posts);
    case Call::Operation::kReduceScatter:
      return reduce_scatter(posts);
    case Call::Operation::kAllToAll:
      return all_to_all(posts);
    case Call::Operation::kBarrier:
    case Call::Operation::kAllocateBucket:
      return;
  }
}

}  // namespace lrun::detail
