// How batches come to a device: on a kind of device whose copies are as late as they may be.

#include "lrun/device_transfer.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/devices/fake_device.h"

namespace lrun::test {
namespace {

struct Picture {
  at::Tensor pixels;
  std::optional<at::Tensor> mask;
  std::string name;

  template <class Visitor>
  void for_each_tensor(Visitor&& visit) {
    visit(pixels);
    if (mask) visit(*mask);
  }
};

struct Opaque {
  at::Tensor hidden;
  [[nodiscard]] Opaque to(at::Device device) const { return {hidden.to(device)}; }
};

at::Tensor numbers() { return at::arange(6, at::kDouble).view({2, 3}); }

c10::Stream new_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

class DeviceTransferTest : public ::testing::Test {
 protected:
  void SetUp() override { forget_fake_history(); }
  void TearDown() override { c10::impl::VirtualGuardImpl(fake(0).type()).synchronizeDevice(1); }
};

TEST_F(DeviceTransferTest, MovesEveryTensorOfANestedBatch) {
  using Batch = std::tuple<at::Tensor, std::pair<std::vector<at::Tensor>, int>, std::map<std::string, at::Tensor>,
                           Picture, std::optional<Picture>, std::optional<at::Tensor>>;
  const Batch batch = {numbers(),
                       {{numbers() + 1, numbers() + 2}, 7},
                       {{"mask", numbers() + 3}},
                       {numbers() + 4, numbers() + 5, "cat"},
                       Picture{numbers() + 6, std::nullopt, "dog"},
                       std::nullopt};
  DeviceTransfer transfer(fake(1));
  Batch moved = transfer(batch);
  const auto tensors = detail::tensors_of(moved);
  ASSERT_EQ(tensors.size(), 7U);
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    EXPECT_EQ(tensors[index]->device(), fake(1)) << index;
    EXPECT_TRUE(tensors[index]->cpu().equal(numbers() + static_cast<double>(index))) << index << *tensors[index];
  }
  EXPECT_TRUE(std::get<0>(batch).is_cpu()) << "the batch stays as it is";
  EXPECT_EQ(std::get<3>(moved).name, "cat");
  EXPECT_FALSE(std::get<5>(moved));
}

TEST_F(DeviceTransferTest, MovesWhatMovesItself) {
  EXPECT_EQ(DeviceTransfer(fake(0))(Opaque{numbers()}).hidden.device(), fake(0));
}

TEST_F(DeviceTransferTest, CopiesOnAStreamOfItsOwnForWhichTheCurrentOneWaits) {
  DeviceTransfer transfer(fake(1));
  const c10::Stream compute = new_stream(fake(1));
  const c10::StreamGuard current(compute);
  const at::Tensor batch = numbers().pin_memory();
  forget_fake_history();
  const at::Tensor moved = transfer(batch);
  const auto history = fake_history();
  ASSERT_EQ(history.size(), 2U) << "one late copy, one use";
  EXPECT_TRUE(history[0].starts_with("copy 1:")) << history[0];
  EXPECT_NE(history[0], "copy 1:" + std::to_string(compute.id()));
  EXPECT_EQ(history[1], "used 1 in 1:" + std::to_string(compute.id()));
  EXPECT_EQ(waiting_copies(), 1U) << "nobody has needed it yet";
  EXPECT_TRUE((moved * 2).cpu().equal(numbers() * 2));
  EXPECT_EQ(waiting_copies(), 0U);
}

TEST_F(DeviceTransferTest, GivesPinnedMemoryBackAfterTheWait) {
  DeviceTransfer transfer(fake(1));
  at::Tensor batch = numbers().pin_memory();
  const at::Tensor moved = transfer(batch);
  EXPECT_EQ(waiting_copies(), 1U);
  { const TransferWait wait(transfer); }
  EXPECT_EQ(waiting_copies(), 0U);
  batch.zero_();
  EXPECT_TRUE(moved.cpu().equal(numbers()));
}

TEST_F(DeviceTransferTest, GivesOrdinaryMemoryBackAtOnce) {
  DeviceTransfer transfer(fake(1));
  at::Tensor batch = numbers();
  const at::Tensor moved = transfer(batch);
  batch.zero_();
  transfer.wait();
  EXPECT_EQ(waiting_copies(), 1U) << "there was nothing to wait for";
  EXPECT_TRUE(moved.cpu().equal(numbers()));
}

TEST_F(DeviceTransferTest, MovesViewsOfAnyLayout) {
  DeviceTransfer transfer(fake(0));
  const at::Tensor wide = numbers().select(0, 1).expand({4, 3});
  const at::Tensor turned = numbers().t();
  const at::Tensor strided = numbers().narrow(1, 0, 2);
  EXPECT_TRUE(transfer(wide).cpu().equal(wide));
  EXPECT_TRUE(transfer(turned).cpu().equal(turned));
  EXPECT_TRUE(transfer(strided).cpu().equal(strided));
  EXPECT_EQ(transfer(at::empty({0, 3})).sizes(), at::IntArrayRef({0, 3}));
}

TEST_F(DeviceTransferTest, SharesWhatIsThere) {
  DeviceTransfer transfer(fake(1));
  const at::Tensor there = numbers().to(fake(1));
  forget_fake_history();
  EXPECT_TRUE(transfer(there).is_same(there));
  EXPECT_TRUE(fake_history().empty());
  EXPECT_FALSE(transfer(at::Tensor()).defined());
}

TEST_F(DeviceTransferTest, MovesBetweenDevices) {
  const at::Tensor there = numbers().to(fake(0));
  const at::Tensor moved = DeviceTransfer(fake(1))(there);
  EXPECT_EQ(moved.device(), fake(1));
  EXPECT_TRUE(moved.cpu().equal(numbers()));
  EXPECT_TRUE(DeviceTransfer(at::kCPU)(there).equal(numbers()));
}

TEST_F(DeviceTransferTest, LetsGradientsOfTheBatchThrough) {
  const at::Tensor input = numbers().requires_grad_();
  (DeviceTransfer(fake(1))(input) * 3).sum().backward();
  EXPECT_TRUE(input.grad().equal(at::full_like(input, 3)));
}

TEST_F(DeviceTransferTest, DoesWithoutStreamsWhereADeviceHasNone) {
  EXPECT_EQ(DeviceTransfer(at::kMeta)(numbers()).device(), at::Device(at::kMeta));
}

}  // namespace
}  // namespace lrun::test
