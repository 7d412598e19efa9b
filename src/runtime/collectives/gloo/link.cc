// In: messages between two ranks, each in its own memory. Out: the same through the connections of LibTorch's
// ProcessGroupGloo. Made by the group's setup, called by GlooChannel. The one file of liblrun that sees gloo.
#include "runtime/collectives/gloo/link.h"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "runtime/collectives/bootstrap/store_client.h"
#include "runtime/collectives/common/background_thread.h"
#include "runtime/collectives/common/pipe_signal.h"

namespace lrun::detail {
namespace {

using namespace std::chrono_literals;

/// Gloo's own timeouts must not strike: they close all connections before a reason could be sent. A socket accepts no
/// longer one.
constexpr std::chrono::milliseconds kLongestOfGloo = 24h;

/// The workers' store as gloo wants it, with our own client: c10d's waits without a deadline.
class StoreForGloo final : public c10d::Store {
 public:
  StoreForGloo(const StoreAddress& address, std::string prefix, SteadyTime deadline)
      : client_({address.host, address.port, false}, deadline), prefix_(std::move(prefix)), deadline_(deadline) {}

  c10::intrusive_ptr<c10d::Store> clone() override { refuse("clone"); }

  using c10d::Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    const std::lock_guard lock(mutex_);
    client_.set(prefix_ + key, {value.begin(), value.end()}, deadline_);
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    const auto value = client_.get(prefix_ + key, deadline_);
    if (!value) throw std::runtime_error("no rank has set '" + key + "' in the store");
    return {value->begin(), value->end()};
  }
  bool check(const std::vector<std::string>& keys) override {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(
        keys, [this](const std::string& key) { return client_.try_get(prefix_ + key, deadline_).has_value(); });
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) static_cast<void>(get(key));
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& /*timeout*/) override { wait(keys); }

  std::int64_t add(const std::string& /*key*/, std::int64_t /*value*/) override { refuse("add"); }
  bool deleteKey(const std::string& /*key*/) override { refuse("deleteKey"); }
  std::int64_t getNumKeys() override { refuse("getNumKeys"); }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw std::logic_error("gloo asks the store for '" + what + "'");
  }

  std::mutex mutex_;
  StoreClient client_;
  const std::string prefix_;
  const SteadyTime deadline_;
};

class Message final : public GlooMessage {
 public:
  explicit Message(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  bool wait(std::chrono::milliseconds longest) override { return work_->wait(std::max(longest, 1ms)); }
  void interrupt() override { work_->abort(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

class Link final : public GlooLink {
 public:
  Link(const GroupOptions& options, const std::string& address, const std::string& prefix)
      : rank_(options.rank), world_size_(options.world_size) {
    auto gloo_options = c10d::ProcessGroupGloo::Options::create(std::min(options.timeout, kLongestOfGloo));
    const BlockedSignals blocked;  // its threads leave signals to the program's own
    gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
    gloo_options->threads = 1;  // for its collectives, of which none is called
    const SteadyTime deadline = std::chrono::steady_clock::now() + options.timeout;
    gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<StoreForGloo>(options.store, prefix, deadline), rank_, world_size_, gloo_options);
  }

  std::unique_ptr<GlooMessage> send(int peer, const void* data, std::size_t bytes, GlooLane lane) override {
    std::vector<at::Tensor> tensors = {wrap(const_cast<void*>(data), bytes)};  // gloo only reads it
    const std::lock_guard lock(mutex_);
    const PipeSignalAsError no_signal;
    return std::make_unique<Message>(gloo_->send(tensors, peer, static_cast<int>(lane)));
  }
  std::unique_ptr<GlooMessage> receive(int peer, void* data, std::size_t bytes, GlooLane lane) override {
    std::vector<at::Tensor> tensors = {wrap(data, bytes)};
    const std::lock_guard lock(mutex_);
    const PipeSignalAsError no_signal;
    return std::make_unique<Message>(gloo_->recv(tensors, peer, static_cast<int>(lane)));
  }

  // Gloo closes a connection when something on it times out, and all of them together.
  void close() noexcept override {
    for (int peer = 0; peer < world_size_; ++peer) {
      if (peer == rank_) continue;
      try {
        char nothing = 0;
        receive(peer, &nothing, 1, GlooLane::kNever)->wait(1ms);
      } catch (const std::exception&) {
        // That is how it ends.
      }
    }
  }

 private:
  static at::Tensor wrap(void* data, std::size_t bytes) {
    return at::from_blob(data, {static_cast<std::int64_t>(bytes)}, at::TensorOptions().dtype(at::kByte));
  }

  const int rank_;
  const int world_size_;
  std::mutex mutex_;  // gloo counts its messages
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
};

}  // namespace

std::unique_ptr<GlooLink> connect_gloo(const GroupOptions& options, const std::string& address,
                                       const std::string& prefix) {
  return std::make_unique<Link>(options, address, prefix);
}

bool has_gloo() { return true; }

}  // namespace lrun::detail
