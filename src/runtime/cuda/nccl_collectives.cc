// In: checked operations of the training thread on a GPU. Out: NCCL's kernels on a stream of their own, which a
// watchdog ends when a rank fails. Made by liblrun_cuda.so's entry point.
#include "runtime/cuda/nccl_collectives.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <lrun/error.h>
#include <nccl.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/collectives/bootstrap/backoff.h"
#include "runtime/collectives/common/background_thread.h"
#include "runtime/collectives/common/call.h"
#include "runtime/collectives/common/call_log.h"
#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/group_member.h"
#include "runtime/collectives/common/row_sizes.h"
#include "runtime/cuda/cuda_calls.h"
#include "runtime/cuda/nccl_communicator.h"
#include "runtime/cuda/nccl_types.h"
#include "runtime/cuda/stream_mark.h"

namespace lrun::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 100ms;
constexpr auto kLastDataOfOneThatLeft = 100ms;
constexpr auto kMomentToEnd = 1s;                      // of a process whose connections are closed, or of its last data
constexpr std::string_view kLeft = " left the group";  // the ranks that hear it add during what

struct InFlight {
  std::uint64_t sequence;
  std::string name;
  SteadyTime begin;
  SteadyTime deadline;
  std::shared_ptr<Mark> ready;  // of the caller's stream: what came before has ended
  std::shared_ptr<Mark> end;
};

/// Calls of NCCL that begin together, at the end: ranks that send to each other would wait for each other otherwise.
class OneLaunch {
 public:
  OneLaunch() { check_nccl(ncclGroupStart(), "ncclGroupStart"); }
  OneLaunch(const OneLaunch&) = delete;
  OneLaunch& operator=(const OneLaunch&) = delete;
  ~OneLaunch() {
    if (!is_ended_) static_cast<void>(ncclGroupEnd());
  }
  ncclResult_t end() {
    is_ended_ = true;
    return ncclGroupEnd();
  }

 private:
  bool is_ended_ = false;
};

class NcclCollectives final : public GroupMember {
 public:
  explicit NcclCollectives(const CudaGroup& group)
      : GroupMember("nccl", group.options.rank, group.options.world_size, group.options.timeout),
        group_(group),
        device_(c10::cuda::current_device()),
        stream_(c10::cuda::getStreamFromPool(true, device_)),
        communicator_(group),
        watchdog_(start_background_thread([this] { watch(); })) {}
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;
  /// A rank that fails does not wait for the others, which need it no more: it tells them that it left.
  ~NcclCollectives() override {
    if (std::uncaught_exceptions() > exceptions_before_) {
      fail({Failure::Kind::kPeerLost, own_name() + std::string(kLeft)}, true);
    }
    const SteadyTime deadline = std::chrono::steady_clock::now() + timeout();
    while (is_busy()) std::this_thread::sleep_for(1ms);  // ends: the watchdog has the deadlines
    communicator_.close(deadline);
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    watchdog_.join();
  }

  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) override {
    if (count < 0) throw std::invalid_argument("allocate_bucket: a bucket of " + std::to_string(count) + " elements");
    return at::zeros({count}, at::TensorOptions().dtype(dtype).device(at::kCUDA, device_));
  }

  using Collectives::all_reduce;
  std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op, std::uint64_t tag) override {
    check(tensor, "all_reduce");
    Call call = call_with(Call::Operation::kAllReduce, tensor);
    call.op = static_cast<std::int32_t>(op);
    call.tag = tag;
    return reduce("all_reduce", call, tensor, op);
  }

  void broadcast(at::Tensor tensor, int root) override {
    check(tensor, "broadcast");
    if (root < 0 || root >= world_size()) {
      throw std::invalid_argument("broadcast: there is no rank " + std::to_string(root));
    }
    Call call = call_with(Call::Operation::kBroadcast, tensor);
    call.root = root;
    const at::Tensor here = on_gpu(tensor);
    const auto work = start("broadcast", "ncclBroadcast", call, {here}, [&](ncclComm_t communicator) {
      return ncclBroadcast(here.const_data_ptr(), here.mutable_data_ptr(), here.nbytes(), ncclUint8, root, communicator,
                           stream_.stream());
    });
    if (rank() == root) return work->wait();  // its tensor is only read
    bring_back(*work, here, tensor);
  }

  void all_gather(at::Tensor output, const at::Tensor& input) override {
    check_rows(output, input, "all_gather");
    const at::Tensor from = on_gpu(input);
    const at::Tensor to = on_gpu(output);
    const Call call = call_with(Call::Operation::kAllGather, input);
    const auto work = start("all_gather", "ncclAllGather", call, {from, to}, [&](ncclComm_t communicator) {
      return ncclAllGather(from.const_data_ptr(), to.mutable_data_ptr(), from.nbytes(), ncclUint8, communicator,
                           stream_.stream());
    });
    bring_back(*work, to, output);
  }

  void reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override {
    check_rows(input, output, "reduce_scatter");
    const auto type = type_of(output);
    const auto operation = operation_of(output, op);
    const at::Tensor from = on_gpu(input);
    const at::Tensor to = on_gpu(output);
    Call call = call_with(Call::Operation::kReduceScatter, output);
    call.op = static_cast<std::int32_t>(op);
    const auto work = start("reduce_scatter", "ncclReduceScatter", call, {from, to}, [&](ncclComm_t communicator) {
      return ncclReduceScatter(from.const_data_ptr(), to.mutable_data_ptr(), static_cast<std::size_t>(to.numel()), type,
                               operation, communicator, stream_.stream());
    });
    bring_back(*work, to, output);
  }

  void barrier() override {
    if (!barrier_.defined()) barrier_ = allocate_bucket(1, at::kFloat);
    const auto work = reduce("barrier", Call(), barrier_, ReduceOp::kSum);
    while (!work->done()) std::this_thread::sleep_for(20us);  // ends: the watchdog has the deadline
    work->wait();
  }

  void abort(const std::string& reason) override { fail({Failure::Kind::kPeerLost, reason}, true); }

  void require_usable() {
    const std::lock_guard lock(mutex_);
    if (failure_) failure_->raise();
  }
  [[nodiscard]] bool has_failed() {
    const std::lock_guard lock(mutex_);
    return failure_.has_value();
  }
  [[nodiscard]] bool is_busy() {
    const std::lock_guard lock(mutex_);
    const auto has_ended = [](const InFlight& work) { return work.end->is_reached(); };
    return !failure_ && !std::ranges::all_of(in_flight_, has_ended);
  }
  [[nodiscard]] c10::DeviceIndex device() const { return device_; }

 private:
  class Work final : public CollectiveWork {
   public:
    Work(NcclCollectives& group, std::shared_ptr<Mark> end) : group_(group), end_(std::move(end)) {}
    [[nodiscard]] bool done() const override { return end_->is_reached() || group_.has_failed(); }
    void wait() override {
      group_.require_usable();
      end_->hold_back(c10::cuda::getCurrentCUDAStream(group_.device()).stream());
    }

   private:
    NcclCollectives& group_;
    std::shared_ptr<Mark> end_;  // shared: with the watchdog
  };

  void move_rows(at::Tensor output, const at::Tensor& input, const RowSizes& sizes) override {
    check(output, "all_to_all");
    check(input, "all_to_all");
    const at::Tensor from = on_gpu(input);
    const at::Tensor to = on_gpu(output);
    Call call = call_with(Call::Operation::kAllToAll, input);
    set_shape(call, sizes.longest);
    const auto work = start("all_to_all", "ncclGroupEnd", call, {from, to}, [&](ncclComm_t communicator) {
      const auto element = static_cast<std::size_t>(from.element_size());
      const auto* send = static_cast<const std::byte*>(from.const_data_ptr());
      auto* receive = static_cast<std::byte*>(to.mutable_data_ptr());
      OneLaunch launch;
      for (int peer = 0; peer < world_size(); ++peer) {
        const std::size_t sent = static_cast<std::size_t>(sizes.sends[static_cast<std::size_t>(peer)]) * element;
        const std::size_t got = static_cast<std::size_t>(sizes.receives[static_cast<std::size_t>(peer)]) * element;
        if (sent > 0) check_nccl(ncclSend(send, sent, ncclUint8, peer, communicator, stream_.stream()), "ncclSend");
        if (got > 0) check_nccl(ncclRecv(receive, got, ncclUint8, peer, communicator, stream_.stream()), "ncclRecv");
        send += sent;
        receive += got;
      }
      return launch.end();
    });
    bring_back(*work, to, output);
  }

  void check(const at::Tensor& tensor, const std::string& operation) const {
    if (!tensor.defined()) throw std::invalid_argument(operation + ": the tensor is undefined");
    if (!tensor.is_cpu() && (!tensor.is_cuda() || tensor.get_device() != device_)) {
      throw std::invalid_argument(operation + ": the tensor is on " + tensor.device().str() +
                                  ", the group on cuda:" + std::to_string(device_));
    }
    if (!tensor.is_contiguous()) throw std::invalid_argument(operation + ": the tensor is not contiguous");
  }

  /// The tensor, or a copy of one of the CPU.
  [[nodiscard]] at::Tensor on_gpu(const at::Tensor& tensor) const {
    return tensor.is_cuda() ? tensor : tensor.detach().to(at::Device(at::kCUDA, device_));
  }

  /// Waits for the operation; a tensor of the CPU gets its result. An operation that was aborted meanwhile ends without
  /// one, and the copy waits for it.
  void bring_back(CollectiveWork& work, const at::Tensor& here, const at::Tensor& tensor) {
    work.wait();
    const at::NoGradGuard no_grad;
    if (tensor.is_cuda()) return;
    tensor.detach().copy_(here);
    require_usable();
  }

  void check_rows(const at::Tensor& whole, const at::Tensor& part, const std::string& operation) const {
    check(whole, operation);
    check(part, operation);
    const bool fits = whole.dim() == part.dim() + 1 && whole.size(0) == world_size() &&
                      whole.sizes().slice(1) == part.sizes() && whole.scalar_type() == part.scalar_type();
    if (!fits) {
      throw std::invalid_argument(operation + ": one tensor has to be (" + std::to_string(world_size()) +
                                  ", *shape) of the other, of its dtype");
    }
  }

  std::unique_ptr<CollectiveWork> reduce(const char* name, const Call& call, const at::Tensor& tensor, ReduceOp op) {
    const auto type = type_of(tensor);
    const auto operation = operation_of(tensor, op);
    const at::Tensor here = on_gpu(tensor);
    auto work = start(name, "ncclAllReduce", call, {here}, [&](ncclComm_t communicator) {
      return ncclAllReduce(here.const_data_ptr(), here.mutable_data_ptr(), static_cast<std::size_t>(here.numel()), type,
                           operation, communicator, stream_.stream());
    });
    if (!tensor.is_cuda()) bring_back(*work, here, tensor);
    return work;
  }

  std::unique_ptr<CollectiveWork> start(const char* name, const char* function, const Call& call,
                                        std::initializer_list<at::Tensor> tensors,
                                        const std::function<ncclResult_t(ncclComm_t)>& operation) {
    require_usable();
    const c10::cuda::CUDAGuard guard(device_);
    const InFlight work = note(name, call);
    try {
      work.ready->record(c10::cuda::getCurrentCUDAStream(device_).stream());
      work.ready->hold_back(stream_.stream());
      for (const at::Tensor& tensor : tensors) {  // its memory is not reused before this stream is done with it
        c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream_);
      }
      communicator_.enqueue(function, operation, work.deadline);
      work.end->record(stream_.stream());
    } catch (const CollectiveTimeout&) {
      time_out(work);
      require_usable();
      throw;
    } catch (...) {
      forget(work);
      require_usable();  // aborted meanwhile: says why
      throw;
    }
    return std::make_unique<Work>(*this, work.end);
  }

  /// From now on the watchdog watches the call: in the first ones NCCL connects, and waits for other ranks.
  InFlight note(const char* name, const Call& call) {
    group_.note(call);
    const SteadyTime now = std::chrono::steady_clock::now();
    InFlight work{
        ++sequence_,   std::string(name) + " #" + std::to_string(sequence_), now, now + timeout(), marks_->take(),
        marks_->take()};
    {
      const std::lock_guard lock(mutex_);
      in_flight_.push_back(work);
    }
    changed_.notify_all();
    return work;
  }

  void forget(const InFlight& work) {
    const std::lock_guard lock(mutex_);
    in_flight_.remove_if([&](const InFlight& other) { return other.sequence == work.sequence; });
  }

  void fail(const Failure& failure, bool tell) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return;
      failure_ = failure;
    }
    const std::lock_guard lock(store_mutex_);
    if (tell) group_.tell(std::to_string(static_cast<std::uint32_t>(failure.kind)) + ' ' + failure.text);
    communicator_.abort();
  }

  void watch() {
    static_cast<void>(cudaSetDevice(device_));  // of this thread; its queries work without it, too
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      in_flight_.remove_if([](const InFlight& work) { return work.end->is_reached(); });
      if (in_flight_.empty() || failure_) {
        changed_.wait(lock, [this] { return stopping_ || (!in_flight_.empty() && !failure_); });
        continue;
      }
      const InFlight oldest = in_flight_.front();
      lock.unlock();
      look_at(oldest);
      lock.lock();
      changed_.wait_for(lock, kTick, [this] { return stopping_; });
    }
  }

  /// Checks whether an operation that is still in flight can end.
  void look_at(const InFlight& oldest) {
    const auto peer = group_.ended_peer();  // asked first: a rank says why it fails, and then ends
    const auto said = hear(oldest);
    if (said) {
      const bool has_left = said->text.find(kLeft) != std::string::npos;
      if (has_left && ends_within(kLastDataOfOneThatLeft, oldest)) return;
      return fail(*said, false);
    }
    if (peer) {
      if (ends_within(kMomentToEnd, oldest)) return;
      return fail({Failure::Kind::kPeerLost, *peer + " ended during " + oldest.name}, true);
    }
    if (const std::string error = communicator_.asynchronous_error(); !error.empty()) {
      return fail(lost_rank(error, oldest), true);
    }
    if (const auto difference = compare(oldest)) return fail(*difference, true);
    if (std::chrono::steady_clock::now() >= oldest.deadline) time_out(oldest);
  }

  /// A rank that has done its part of an operation may leave, or end, before this one has what is already on its way.
  [[nodiscard]] static bool ends_within(std::chrono::milliseconds moment, const InFlight& work) {
    for (Backoff backoff(std::chrono::steady_clock::now() + moment, 20ms); !backoff.is_over(); backoff.sleep()) {
      if (work.end->is_reached()) return true;
    }
    return false;
  }

  /// NCCL notices a closed connection, not whose it was.
  Failure lost_rank(const std::string& error, const InFlight& oldest) {
    for (Backoff backoff(std::chrono::steady_clock::now() + kMomentToEnd, 20ms);; backoff.sleep()) {
      const auto peer = group_.ended_peer();
      if (const auto said = hear(oldest)) return *said;
      if (peer) return {Failure::Kind::kPeerLost, *peer + " ended during " + oldest.name};
      if (backoff.is_over()) {
        return {Failure::Kind::kPeerLost, "NCCL lost another rank during " + oldest.name + ": " + error};
      }
    }
  }

  /// NCCL compares nothing: ranks that called different operations wait for each other, or get meaningless results.
  std::optional<Failure> compare(const InFlight& oldest) {
    const SteadyTime now = std::chrono::steady_clock::now();
    const auto patience = patience_before_comparing(timeout());
    if (now < oldest.begin + patience || now < next_comparison_) return std::nullopt;
    next_comparison_ = now + patience / 2;
    const std::lock_guard lock(store_mutex_);
    return group_.compare();
  }

  void time_out(const InFlight& work) {
    if (work.ready->is_pending()) {
      return fail(
          {Failure::Kind::kTimeout, work.name + " did not begin within " + std::to_string(timeout().count()) +
                                        " ms: the GPU of " + own_name() + " has not ended what was started before it"},
          true);
    }
    std::unique_lock lock(store_mutex_);
    const Failure failure = group_.explain(work.sequence);
    lock.unlock();
    fail(failure, true);
  }

  /// The failure that another rank has published.
  std::optional<Failure> hear(const InFlight& oldest) {
    const std::lock_guard lock(store_mutex_);
    const auto said = group_.heard();
    if (!said) return std::nullopt;
    const std::size_t space = said->find(' ');
    if (space == std::string::npos) return Failure{Failure::Kind::kPeerLost, *said};
    Failure failure{static_cast<Failure::Kind>(std::stoul(said->substr(0, space))), said->substr(space + 1)};
    if (failure.text.ends_with(kLeft)) failure.text += " before " + oldest.name;
    return failure;
  }

  [[nodiscard]] std::string own_name() const { return "rank " + std::to_string(group_.options.name_of(rank())); }

  const int exceptions_before_ = std::uncaught_exceptions();
  const CudaGroup group_;
  const c10::DeviceIndex device_;
  const c10::cuda::CUDAStream stream_;
  NcclCommunicator communicator_;
  const std::shared_ptr<Marks> marks_ = std::make_shared<Marks>();
  std::uint64_t sequence_ = 0;
  SteadyTime next_comparison_{};  // of the watchdog
  at::Tensor barrier_;

  std::mutex store_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<InFlight> in_flight_;
  std::optional<Failure> failure_;
  bool stopping_ = false;
  std::thread watchdog_;  // last: it uses the others
};

}  // namespace

std::unique_ptr<Collectives> make_nccl(const CudaGroup& group) {
  require_cuda();
  return std::make_unique<NcclCollectives>(group);
}

}  // namespace lrun::detail
