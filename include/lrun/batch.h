#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <concepts>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lrun {

/// How a batch is moved to a device. Known: at::Tensor; std::vector, std::array, std::pair, std::tuple and string-keyed
/// std::map of known types; structs with `data` and perhaps `target` like torch::data::Example; and any type with a
/// member `Batch to(at::Device) const`. For another type specialise BatchTraits with the same static function.
template <class Batch>
struct BatchTraits;

/// `batch` with all tensors on `device`. Tensors that already are there are shared, not copied.
template <class Batch>
[[nodiscard]] Batch to_device(const Batch& batch, at::Device device) {
  return BatchTraits<Batch>::to(batch, device);
}

template <>
struct BatchTraits<at::Tensor> {
  static at::Tensor to(const at::Tensor& batch, at::Device device) {
    return !batch.defined() || batch.device() == device ? batch : batch.to(device);
  }
};

template <class Element>
struct BatchTraits<std::vector<Element>> {
  static std::vector<Element> to(const std::vector<Element>& batch, at::Device device) {
    std::vector<Element> moved;
    moved.reserve(batch.size());
    for (const auto& element : batch) moved.push_back(to_device(element, device));
    return moved;
  }
};

template <class Element, std::size_t kSize>
struct BatchTraits<std::array<Element, kSize>> {
  static std::array<Element, kSize> to(std::array<Element, kSize> batch, at::Device device) {
    for (auto& element : batch) element = to_device(element, device);
    return batch;
  }
};

template <class First, class Second>
struct BatchTraits<std::pair<First, Second>> {
  static std::pair<First, Second> to(const std::pair<First, Second>& batch, at::Device device) {
    return {to_device(batch.first, device), to_device(batch.second, device)};
  }
};

template <class... Elements>
struct BatchTraits<std::tuple<Elements...>> {
  static std::tuple<Elements...> to(const std::tuple<Elements...>& batch, at::Device device) {
    return std::apply([&](const auto&... element) { return std::tuple<Elements...>(to_device(element, device)...); },
                      batch);
  }
};

template <class Element>
struct BatchTraits<std::map<std::string, Element>> {
  static std::map<std::string, Element> to(const std::map<std::string, Element>& batch, at::Device device) {
    std::map<std::string, Element> moved;
    for (const auto& [name, element] : batch) moved.emplace(name, to_device(element, device));
    return moved;
  }
};

/// torch::data::Example<Data, Target> and structs like it; other members are copied.
template <class Batch>
requires requires(Batch batch) {
  batch.data;
  batch.data = batch.data;
} &&(!requires(const Batch batch, at::Device device) { batch.to(device); }) struct BatchTraits<Batch> {
  static Batch to(Batch batch, at::Device device) {
    batch.data = to_device(batch.data, device);
    if constexpr (requires { batch.target; }) batch.target = to_device(batch.target, device);
    return batch;
  }
};

template <class Batch>
requires requires(const Batch batch, at::Device device) {
  { batch.to(device) } -> std::convertible_to<Batch>;
} &&(!std::is_same_v<Batch, at::Tensor>)struct BatchTraits<Batch> {
  static Batch to(const Batch& batch, at::Device device) { return batch.to(device); }
};

}  // namespace lrun
