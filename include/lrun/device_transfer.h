#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <lrun/batch.h>
#include <lrun/export.h>

#include <memory>

namespace lrun {

/// Copies batches to one device. On a GPU the copies run on a stream of their own, in parallel with computation; work
/// queued on the current stream afterwards waits for them. CPU memory that is not pinned is copied into pinned memory
/// first, so that the CPU does not wait for the bus. On the CPU this is Tensor::to().
///
/// Threads  one at a time; the thread whose current stream is used.
class LRUN_EXPORT DeviceTransfer {
 public:
  /// \param device  to which batches are copied.
  explicit DeviceTransfer(at::Device device);
  ~DeviceTransfer();
  /// The source may only be destroyed or assigned to afterwards.
  DeviceTransfer(DeviceTransfer&&) noexcept;
  /// The source may only be destroyed or assigned to afterwards.
  DeviceTransfer& operator=(DeviceTransfer&&) noexcept;

  /// Returns `batch` with all tensors on the device. Tensors that are already there are shared, not copied. Pinned
  /// memory of the batch may still be read until wait() returns.
  template <TensorTree Batch>
  [[nodiscard]] Batch operator()(Batch batch) {
    BatchTraits<Batch>::for_each_tensor(batch, Mover{*this});
    publish();
    return batch;
  }

  /// Returns when the memory of all batches may be overwritten. Does not wait for computations on the copies.
  void wait();

 private:
  struct Streams;

  struct Mover {
    DeviceTransfer& transfer;
    void operator()(at::Tensor& tensor) const { transfer.move(tensor); }
    template <detail::MovesItself Opaque>
    void operator()(Opaque& opaque) const {
      opaque = opaque.to(transfer.device_);
    }
  };

  void move(at::Tensor& tensor);
  void publish();

  at::Device device_;
  std::unique_ptr<Streams> streams_;  // null: the device has none
};

/// Waits for a transfer at the end of a scope, also when an exception leaves it.
class LRUN_EXPORT TransferWait {
 public:
  /// \param transfer  must outlive this object.
  explicit TransferWait(DeviceTransfer& transfer) : transfer_(transfer) {}
  TransferWait(const TransferWait&) = delete;
  TransferWait& operator=(const TransferWait&) = delete;
  ~TransferWait();

 private:
  DeviceTransfer& transfer_;
};

}  // namespace lrun
