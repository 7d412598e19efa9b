#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace lrun {

/// Finds the tensors in a batch, or in the outputs of a step: to move them to a device, to split a batch over the
/// devices of a process, and to gather the outputs of its parts.
///
/// Known types are at::Tensor; std::vector, std::array, std::pair, std::tuple, std::optional and string-keyed std::map
/// of known types; structs with `data` and perhaps `target` like torch::data::Example; numbers, enums and std::string,
/// which have no tensors; and any type with a member template
///
///     template <class Visitor> void for_each_tensor(Visitor&& visit) { visit(image), visit(label); }
///
/// For another type specialise BatchTraits with a static function like those below. Values that are not tensors are
/// copied to every part of a batch; of outputs the first part's values are kept. A type with only a member `Batch
/// to(at::Device) const` can be moved, and is refused if it must be split.
template <class Batch>
struct BatchTraits;

namespace detail {

struct VisitAnything {
  template <class Any>
  void operator()(Any&) const {}
};

template <class Batch>
concept MovesItself = !std::is_same_v<Batch, at::Tensor> && requires(const Batch batch, at::Device device) {
  { batch.to(device) } -> std::convertible_to<Batch>;
};

template <class Batch>
concept VisitsItself = requires(Batch batch) {
  batch.for_each_tensor(VisitAnything());
};

template <class Batch>
concept HasData = !MovesItself<Batch> && !VisitsItself<Batch> && requires(Batch batch) {
  batch.data;
  batch.data = batch.data;
};

}  // namespace detail

/// A type in which lrun can find the tensors.
template <class Batch>
concept TensorTree = requires(Batch batch) {
  BatchTraits<Batch>::for_each_tensor(batch, detail::VisitAnything());
};

template <>
struct BatchTraits<at::Tensor> {
  template <class Visitor>
  static void for_each_tensor(at::Tensor& batch, Visitor&& visit) {
    visit(batch);
  }
};

template <class Value>
requires(std::is_arithmetic_v<Value> || std::is_enum_v<Value> ||
         std::is_same_v<Value, std::string>) struct BatchTraits<Value> {
  template <class Visitor>
  static void for_each_tensor(Value&, Visitor&&) {}
};

template <TensorTree Element>
struct BatchTraits<std::vector<Element>> {
  template <class Visitor>
  static void for_each_tensor(std::vector<Element>& batch, Visitor&& visit) {
    if constexpr (!std::is_arithmetic_v<Element>) {  // an element of std::vector<bool> is not a reference
      for (auto& element : batch) BatchTraits<Element>::for_each_tensor(element, visit);
    }
  }
};

template <TensorTree Element, std::size_t kSize>
struct BatchTraits<std::array<Element, kSize>> {
  template <class Visitor>
  static void for_each_tensor(std::array<Element, kSize>& batch, Visitor&& visit) {
    for (auto& element : batch) BatchTraits<Element>::for_each_tensor(element, visit);
  }
};

template <TensorTree First, TensorTree Second>
struct BatchTraits<std::pair<First, Second>> {
  template <class Visitor>
  static void for_each_tensor(std::pair<First, Second>& batch, Visitor&& visit) {
    BatchTraits<First>::for_each_tensor(batch.first, visit);
    BatchTraits<Second>::for_each_tensor(batch.second, visit);
  }
};

template <TensorTree... Elements>
struct BatchTraits<std::tuple<Elements...>> {
  template <class Visitor>
  static void for_each_tensor(std::tuple<Elements...>& batch, Visitor&& visit) {
    std::apply([&](auto&... element) { (BatchTraits<Elements>::for_each_tensor(element, visit), ...); }, batch);
  }
};

template <TensorTree Element>
struct BatchTraits<std::map<std::string, Element>> {
  template <class Visitor>
  static void for_each_tensor(std::map<std::string, Element>& batch, Visitor&& visit) {
    for (auto& [name, element] : batch) BatchTraits<Element>::for_each_tensor(element, visit);
  }
};

template <TensorTree Element>
struct BatchTraits<std::optional<Element>> {
  template <class Visitor>
  static void for_each_tensor(std::optional<Element>& batch, Visitor&& visit) {
    if (batch) BatchTraits<Element>::for_each_tensor(*batch, visit);
  }
};

template <detail::VisitsItself Batch>
struct BatchTraits<Batch> {
  template <class Visitor>
  static void for_each_tensor(Batch& batch, Visitor&& visit) {
    batch.for_each_tensor(visit);
  }
};

/// torch::data::Example<Data, Target> and structs like it.
template <detail::HasData Batch>
struct BatchTraits<Batch> {
  template <class Visitor>
  static void for_each_tensor(Batch& batch, Visitor&& visit) {
    BatchTraits<std::decay_t<decltype(batch.data)>>::for_each_tensor(batch.data, visit);
    if constexpr (requires { batch.target; }) {
      BatchTraits<std::decay_t<decltype(batch.target)>>::for_each_tensor(batch.target, visit);
    }
  }
};

/// The visitor gets the whole value, whose tensors it cannot see.
template <class Batch>
requires detail::MovesItself<Batch> &&(!detail::VisitsItself<Batch>)struct BatchTraits<Batch> {
  template <class Visitor>
  static void for_each_tensor(Batch& batch, Visitor&& visit) {
    visit(batch);
  }
};

/// The sizes of the parts of a batch that is split over `devices`: as even as possible, larger parts first, no empty
/// parts. 7 over 2 is 4, 3; 10 over 4 is 3, 3, 2, 2; 7 over 8 is seven parts of 1, and the eighth device is idle; a
/// batch without samples is one part of 0.
/// \throws std::invalid_argument  there is no device.
[[nodiscard]] LRUN_EXPORT std::vector<std::int64_t> split_evenly(std::int64_t samples, std::size_t devices);

namespace detail {

struct MoveTensors {
  at::Device device;
  void operator()(at::Tensor& tensor) const {
    if (tensor.defined() && tensor.device() != device) tensor = tensor.to(device);
  }
  template <MovesItself Opaque>
  void operator()(Opaque& opaque) const {
    opaque = opaque.to(device);
  }
};

[[noreturn]] LRUN_EXPORT void refuse_opaque(const char* type);

/// Collects the tensors in the order of visits.
struct CollectTensors {
  std::vector<at::Tensor*>& tensors;
  void operator()(at::Tensor& tensor) const { tensors.push_back(&tensor); }
  template <MovesItself Opaque>
  void operator()(Opaque&) const {
    refuse_opaque(typeid(Opaque).name());
  }
};

template <TensorTree Tree>
std::vector<at::Tensor*> tensors_of(Tree& tree) {
  std::vector<at::Tensor*> tensors;
  BatchTraits<Tree>::for_each_tensor(tree, CollectTensors{tensors});
  return tensors;
}

/// The size of dimension 0 of all tensors that have one. \throws std::invalid_argument  the sizes differ.
LRUN_EXPORT std::int64_t count_samples(const std::vector<at::Tensor*>& tensors);
/// Narrows all tensors that have a dimension 0 to `size` rows from `begin`.
LRUN_EXPORT void narrow_all(const std::vector<at::Tensor*>& tensors, std::int64_t begin, std::int64_t size);

}  // namespace detail

/// Returns `batch` with all tensors on `device`. Tensors that are already there are shared, not copied.
template <TensorTree Batch>
[[nodiscard]] Batch to_device(Batch batch, at::Device device) {
  BatchTraits<Batch>::for_each_tensor(batch, detail::MoveTensors{device});
  return batch;
}

/// Splits `batch` along dimension 0 of its tensors into parts of the sizes of split_evenly(). The parts are views, not
/// copies. Every part gets the tensors without dimensions.
/// \throws std::invalid_argument  tensors have different numbers of samples.
/// \throws lrun::Unsupported      the type cannot be split.
template <TensorTree Batch>
[[nodiscard]] std::vector<Batch> split_batch(const Batch& batch, std::size_t devices) {
  Batch whole = batch;
  const auto sizes = split_evenly(detail::count_samples(detail::tensors_of(whole)), devices);
  std::vector<Batch> parts(sizes.size(), batch);
  std::int64_t begin = 0;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    detail::narrow_all(detail::tensors_of(parts[index]), begin, sizes[index]);
    begin += sizes[index];
  }
  return parts;
}

}  // namespace lrun
