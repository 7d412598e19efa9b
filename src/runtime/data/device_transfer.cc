#include <ATen/Context.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <lrun/device_transfer.h>

#include <exception>
#include <utility>
#include <vector>

namespace lrun {
namespace {

/// Tensors that can be copied through pinned memory in one piece, without a history in autograd.
bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.numel() > 0 && !tensor.requires_grad();
}

}  // namespace

struct DeviceTransfer::Streams {
  explicit Streams(at::Device device)
      : guard(device.type()), copies(guard.getStreamFromGlobalPool(device)), arrived(device.type()) {}

  c10::impl::VirtualGuardImpl guard;
  c10::Stream copies;
  c10::Event arrived;
  std::vector<at::Tensor> copied;  // since the current stream was last told to wait
  bool reads_batch = false;        // the batch's own memory, which is the caller's
};

DeviceTransfer::DeviceTransfer(at::Device device) : device_(device) {
  if (!at::isAccelerator(device.type())) return;
  try {
    streams_ = std::make_unique<Streams>(device);
  } catch (const c10::Error&) {
    // A kind of device without streams to choose from.
  }
}

DeviceTransfer::~DeviceTransfer() = default;
DeviceTransfer::DeviceTransfer(DeviceTransfer&&) noexcept = default;
DeviceTransfer& DeviceTransfer::operator=(DeviceTransfer&&) noexcept = default;

void DeviceTransfer::move(at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device() == device_) return;
  if (!streams_ || !is_plain(tensor)) {
    tensor = tensor.to(device_);
    return;
  }
  at::Tensor source = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  if (!at::globalContext().isPinnedPtr(source.storage().data(), device_.type())) {
    source = source.pin_memory();  // of a cache, which takes it back when the copy has ended
  } else {
    streams_->reads_batch = true;
  }
  const c10::StreamGuard on_copies(streams_->copies);
  tensor = source.to(device_, /*non_blocking=*/true);
  streams_->copied.push_back(tensor);
}

void DeviceTransfer::publish() {
  if (!streams_ || streams_->copied.empty()) return;
  const c10::Stream current = streams_->guard.getStream(device_);
  streams_->arrived.record(streams_->copies);
  streams_->arrived.block(current);
  // Memory of the copying stream is not reused for a later batch before this stream has finished with it.
  for (const at::Tensor& tensor : streams_->copied) {
    streams_->guard.recordDataPtrOnStream(tensor.storage().data_ptr(), current);
  }
  streams_->copied.clear();
}

void DeviceTransfer::wait() {
  if (!streams_ || !std::exchange(streams_->reads_batch, false)) return;
  streams_->guard.synchronizeStream(streams_->copies);
}

TransferWait::~TransferWait() {
  try {
    transfer_.wait();
  } catch (const std::exception&) {
    // A device that has failed reports it in the next operation.
  }
}

}  // namespace lrun
