// In: the function's result and the tensors of a module, in the first rank. Out: the same in the launching process.
// Called by the rank's main function and by launch().
#include "runtime/launch/returned_state.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <lrun/error.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <cstring>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

namespace lrun::detail {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;
/// Name, dtype and shape of every tensor, and the result. The tensors' bytes follow in the same order.
using Contents =
    std::tuple<std::vector<std::string>, std::vector<std::int64_t>, std::vector<std::vector<std::int64_t>>>;

Named state_of(const torch::nn::Module* module) {
  Named state;
  if (module == nullptr) return state;
  for (const auto& item : module->named_parameters())
    state.emplace_back("parameter '" + item.key() + "'", item.value());
  for (const auto& item : module->named_buffers()) state.emplace_back("buffer '" + item.key() + "'", item.value());
  return state;
}

std::vector<std::vector<std::int64_t>> shapes_of(const Named& state) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const auto& [name, tensor] : state) shapes.push_back(tensor.sizes().vec());
  return shapes;
}

std::vector<std::int64_t> dtypes_of(const Named& state) {
  std::vector<std::int64_t> dtypes;
  for (const auto& [name, tensor] : state) dtypes.push_back(static_cast<std::int64_t>(tensor.scalar_type()));
  return dtypes;
}

std::vector<std::string> names_of(const Named& state) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  return names;
}

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

void require_dense(const Named& state) {
  for (const auto& [name, tensor] : state) {
    if (tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized()) continue;
    throw Unsupported(name + " is not a dense tensor: it cannot come back from a launch");
  }
}

/// Reads what pack() wrote, front to back.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) throw Error("what a launch returned is cut off");
    const auto taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  std::uint64_t take_size() {
    std::uint64_t size = 0;
    std::memcpy(&size, take(sizeof size).data(), sizeof size);
    return size;
  }

 private:
  std::string_view bytes_;
};

std::string type_text(std::int64_t dtype, const std::vector<std::int64_t>& shape) {
  std::ostringstream text;
  text << static_cast<at::ScalarType>(dtype) << ' ' << at::IntArrayRef(shape);
  return text.str();
}

void require_same(const Named& here, const Contents& there) {
  const auto& [names, dtypes, shapes] = there;
  const auto fail = [](const std::string& what) {
    throw Error("the module here is not the one that the launch trained: " + what);
  };
  const auto own_names = names_of(here);
  const auto own_dtypes = dtypes_of(here);
  const auto own_shapes = shapes_of(here);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i >= here.size() || own_names[i] != names[i]) fail(names[i] + " is not here");
    if (own_dtypes[i] == dtypes[i] && own_shapes[i] == shapes[i]) continue;
    fail(names[i] + " is " + type_text(own_dtypes[i], own_shapes[i]) + " here and " + type_text(dtypes[i], shapes[i]) +
         " there");
  }
  if (here.size() > names.size()) fail(own_names[names.size()] + " was not there");
}

}  // namespace

void pack(const c10::IValue& result, const torch::nn::Module* module,
          const std::function<void(std::string_view)>& write) {
  const Named state = state_of(module);
  require_dense(state);
  const auto contents = c10::ivalue::Tuple::create(
      {c10::IValue(names_of(state)), c10::IValue(dtypes_of(state)), c10::IValue(shapes_of(state)), result});
  const std::vector<char> text = torch::jit::pickle_save(contents);
  const std::uint64_t size = text.size();
  write({reinterpret_cast<const char*>(&size), sizeof size});
  write({text.data(), text.size()});
  for (const auto& [name, tensor] : state) write(bytes_of(tensor.detach().cpu().contiguous()));
}

c10::IValue unpack(std::string_view bytes, torch::nn::Module* module) {
  Bytes left(bytes);
  const std::string_view text = left.take(left.take_size());
  const c10::IValue contents = torch::jit::pickle_load({text.begin(), text.end()});
  const auto& elements = contents.toTupleRef().elements();
  const Named here = state_of(module);
  if (module != nullptr) {
    require_same(here, {elements.at(0).to<std::vector<std::string>>(), elements.at(1).toIntVector(),
                        elements.at(2).to<std::vector<std::vector<std::int64_t>>>()});
  }
  at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : here) {
    auto there = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).requires_grad(false));
    const auto taken = left.take(there.nbytes());
    if (!taken.empty()) std::memcpy(there.mutable_data_ptr(), taken.data(), taken.size());
    tensor.variable_data().copy_(there);
  }
  return elements.at(3);
}

}  // namespace lrun::detail
