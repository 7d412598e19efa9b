#include "runtime/session/backend_choice.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace lrun::detail {

std::string choose_session_backend(const World& world, const SessionOptions& options, at::Device device) {
  if (world.world_size == 1) {
    constexpr std::array kWithStore{std::string_view("shm"), std::string_view("gloo"), std::string_view("shm+gloo")};
    return std::ranges::find(kWithStore, options.backend) == kWithStore.end() ? options.backend : "single";
  }
  const std::string& asked = options.backend.empty() ? world.backend : options.backend;
  const bool is_open = asked.empty() || asked == "auto";
  return is_open && device.is_cuda() ? "nccl" : asked;
}

}  // namespace lrun::detail
