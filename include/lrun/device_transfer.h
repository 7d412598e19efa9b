#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <lrun/batch.h>
#include <lrun/export.h>

#include <memory>

namespace lrun {

/// Brings batches to one device. On a GPU the copies run on a stream of their own, beside what is being computed, and
/// what the current stream is given afterwards waits for them. Memory of the CPU that is not pinned is copied into
/// pinned memory first, so that the processor does not wait for the bus. On the CPU it is Tensor::to().
///
/// Threads  one at a time; that of the current stream.
class LRUN_EXPORT DeviceTransfer {
 public:
  explicit DeviceTransfer(at::Device device);
  ~DeviceTransfer();
  DeviceTransfer(DeviceTransfer&&) noexcept;
  DeviceTransfer& operator=(DeviceTransfer&&) noexcept;

  /// `batch` with all tensors on the device. Tensors that already are there are shared, not copied. Pinned memory of
  /// the batch is still being read until wait() has returned.
  template <TensorTree Batch>
  [[nodiscard]] Batch operator()(Batch batch) {
    BatchTraits<Batch>::for_each_tensor(batch, Mover{*this});
    publish();
    return batch;
  }

  /// Returns when the memory of all batches may be written again; does not wait for what computes on the copies.
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

/// Waits for a transfer at the end of a scope, however that is left.
class LRUN_EXPORT TransferWait {
 public:
  explicit TransferWait(DeviceTransfer& transfer) : transfer_(transfer) {}
  TransferWait(const TransferWait&) = delete;
  TransferWait& operator=(const TransferWait&) = delete;
  ~TransferWait();

 private:
  DeviceTransfer& transfer_;
};

}  // namespace lrun
