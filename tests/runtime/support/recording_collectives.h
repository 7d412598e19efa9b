#pragma once

#include <lrun/collectives.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace lrun::test {

/// Passes everything on to another group's element, and reports each operation first.
class RecordingCollectives : public Collectives {
 public:
  using Listener = std::function<void(const std::string& operation, const at::Tensor& tensor)>;

  RecordingCollectives(Collectives& inner, Listener listener) : inner_(inner), listener_(std::move(listener)) {}

  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int world_size() const override { return inner_.world_size(); }
  [[nodiscard]] std::string name() const override { return inner_.name(); }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return inner_.timeout(); }

  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) override {
    return inner_.allocate_bucket(count, dtype);
  }
  std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op, std::uint64_t tag) override {
    listener_("all_reduce", tensor);
    return inner_.all_reduce(std::move(tensor), op, tag);
  }
  void broadcast(at::Tensor tensor, int root) override {
    listener_("broadcast", tensor);
    inner_.broadcast(std::move(tensor), root);
  }
  void all_gather(at::Tensor output, const at::Tensor& input) override {
    listener_("all_gather", input);
    inner_.all_gather(std::move(output), input);
  }
  void reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override {
    listener_("reduce_scatter", input);
    inner_.reduce_scatter(std::move(output), input, op);
  }
  void barrier() override {
    listener_("barrier", {});
    inner_.barrier();
  }
  void abort(const std::string& reason) override { inner_.abort(reason); }

 private:
  Collectives& inner_;
  Listener listener_;
};

}  // namespace lrun::test
