// In: a module and the devices of its copies. Out: copies that follow the module's values and modes, and the sum of
// their gradients in the module. Called by Replicas, also in the replicas' threads.
#include "runtime/dp/module_copies.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Type.h>
#include <lrun/error.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <typeinfo>
#include <unordered_map>
#include <utility>

namespace lrun::detail {
namespace {

/// Making a module draws initial values that are not used: the program's random numbers must be those of one device.
class UntouchedRandomness {
 public:
  UntouchedRandomness() : generator_(at::globalContext().defaultGenerator(at::kCPU)), state_(generator_.get_state()) {}
  UntouchedRandomness(const UntouchedRandomness&) = delete;
  UntouchedRandomness& operator=(const UntouchedRandomness&) = delete;
  ~UntouchedRandomness() { generator_.set_state(state_); }

 private:
  at::Generator generator_;
  at::Tensor state_;
};

std::string class_of(const torch::nn::Module& module) { return c10::demangle(typeid(module).name()); }

std::shared_ptr<torch::nn::Module> make_copy(const torch::nn::Module& module, const ModuleMaker& make) {
  auto copy = make();
  if (!copy) throw std::invalid_argument("WrapOptions::make_replica returned nothing");
  const torch::nn::Module& made = *copy;
  if (typeid(made) == typeid(module)) return copy;
  throw std::invalid_argument("a replica of a '" + class_of(module) + "' cannot be a '" + class_of(made) +
                              "': override clone(), or give WrapOptions::make_replica");
}

[[noreturn]] void refuse_copy(const torch::nn::Module& module, const std::string& difference) {
  throw std::invalid_argument("a replica of '" + class_of(module) + "' is made differently than the module was: " +
                              difference + "; give WrapOptions::make_replica");
}

using Tensors = torch::OrderedDict<std::string, at::Tensor>;

void require_same_names(const torch::nn::Module& module, const Tensors& own, const Tensors& copy) {
  for (const auto& item : own) {
    const at::Tensor* other = copy.find(item.key());
    if (other == nullptr || other->defined() != item.value().defined()) {
      refuse_copy(module, "it has no '" + item.key() + "'");
    }
  }
  for (const auto& item : copy) {
    if (!own.contains(item.key())) refuse_copy(module, "it has '" + item.key() + "'");
  }
}

/// \throws  a parameter of the copy has another size. Its dtype may differ: the module was converted since.
void require_same_sizes(const torch::nn::Module& module, const Tensors& own, const Tensors& copy) {
  const auto text_of = [](const at::Tensor& tensor) {
    std::string text;
    for (const auto size : tensor.sizes()) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return "[" + text + "]";
  };
  for (const auto& item : own) {
    if (!item.value().defined() || item.value().sizes() == copy[item.key()].sizes()) continue;
    const std::string name = class_of(module);
    throw std::invalid_argument("a replica of '" + name + "' is made differently than the module was: its '" +
                                item.key() + "' is " + text_of(copy[item.key()]) + ", and the module's " +
                                text_of(item.value()) +
                                "; a default constructor does not repeat the arguments of the module's: give "
                                "WrapOptions{.make_replica = [=] { return std::make_shared<" +
                                name + ">(arguments); }}");
  }
}

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  if (!a.has_storage() || !b.has_storage()) return false;  // sparse ones
  return a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl() &&
         a.storage_offset() == b.storage_offset() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

/// Copies may lie on another device.
bool same_form(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
}

bool adds_in_slices(const at::Tensor& into, const at::Tensor& gradient) {
  return into.is_cpu() && gradient.is_cpu() && into.layout() == at::kStrided && gradient.layout() == at::kStrided &&
         into.scalar_type() == gradient.scalar_type();
}

/// As autograd accumulates: sparse gradients stay sparse among sparse ones.
void add(at::Tensor& into, const at::Tensor& gradient) {
  if (into.layout() == at::kStrided) {
    into.add_(gradient);
  } else {
    into = gradient.layout() == at::kStrided ? gradient + into : into + gradient;
  }
}

}  // namespace

ModuleCopies::ModuleCopies(std::shared_ptr<torch::nn::Module> module, const std::vector<at::Device>& devices,
                           const ModuleMaker& make)
    : modules_({std::move(module)}) {
  const torch::nn::Module& own = *modules_.front();
  if (devices.size() > 1 && !make) {
    throw Unsupported("a replica of '" + class_of(own) +
                      "' cannot be made: it has neither clone() (derive from torch::nn::Cloneable) nor a default "
                      "constructor, and WrapOptions::make_replica is not given");
  }
  const c10::InferenceMode normal(false);  // copies that were made within it could not be trained
  const UntouchedRandomness untouched;
  for (std::size_t index = 1; index < devices.size(); ++index) {
    modules_.push_back(make_copy(own, make));
    pair_up(*modules_.back(), devices[index]);
  }
}

void ModuleCopies::pair_up(torch::nn::Module& copy, at::Device device) {
  torch::nn::Module& own = *modules_.front();
  const std::size_t replica = modules_.size() - 2;  // its place in Followed::copies
  const auto add_pairs = [&](std::vector<Followed>& all, const Tensors& owns, const Tensors& copies) {
    require_same_names(own, owns, copies);
    if (&all == &parameters_) require_same_sizes(own, owns, copies);  // buffers may grow in training
    std::unordered_map<const at::TensorImpl*, std::pair<const at::TensorImpl*, std::string>> own_of;  // of each copy
    for (const auto& item : owns) {
      if (!item.value().defined()) continue;
      auto followed = std::ranges::find_if(all, [&](const Followed& known) { return known.own.is_same(item.value()); });
      if (followed == all.end()) followed = all.insert(all.end(), Followed{item.value(), {}, {}});
      const at::Tensor& tensor = copies[item.key()];
      const auto [known, is_new] =
          own_of.try_emplace(tensor.unsafeGetTensorImpl(), item.value().unsafeGetTensorImpl(), item.key());
      if (known->second.first != item.value().unsafeGetTensorImpl()) {
        refuse_copy(own, "its '" + item.key() + "' is tied to '" + known->second.second + "'");
      }
      if (!is_new) continue;
      if (tensor.device() != device) tensor.set_data(tensor.to(device));
      if (followed->copies.size() == replica) {
        followed->copies.push_back(tensor);
      } else {
        followed->ties.emplace_back(followed->copies.back(), tensor);
      }
    }
  };
  add_pairs(parameters_, own.named_parameters(), copy.named_parameters());
  add_pairs(buffers_, own.named_buffers(), copy.named_buffers());
  pair_up_submodules(copy);
}

void ModuleCopies::pair_up_submodules(torch::nn::Module& copy) {
  const torch::nn::Module& own = *modules_.front();
  const auto copies = copy.named_modules();
  for (const auto& item : modules_.front()->named_modules()) {
    const auto* const other = copies.find(item.key());
    if (other == nullptr) refuse_copy(own, "it has no submodule '" + item.key() + "'");
    const torch::nn::Module& of_own = *item.value();
    const torch::nn::Module& of_copy = **other;
    if (typeid(of_own) != typeid(of_copy)) {
      refuse_copy(own, "its '" + item.key() + "' is a '" + class_of(of_copy) + "', and the module's a '" +
                           class_of(of_own) + "'");
    }
    submodules_.push_back({item.value().get(), other->get(), options_copier(of_own)});
  }
}

void ModuleCopies::follow(ReplicaGroup* group) {
  const at::NoGradGuard no_grad;
  std::vector<ReplicaRow> rows;
  for (const auto& parameter : parameters_) {
    if (!joins(rows, parameter, group)) follow_parameter(parameter);
    tie(parameter);
    const auto follow_form = [&](const at::Tensor& copy) {
      if (copy.requires_grad() != parameter.own.requires_grad()) copy.set_requires_grad(parameter.own.requires_grad());
      copy.mutable_grad().reset();  // of a backward that failed in another part: all others were taken
    };
    for (const at::Tensor& copy : parameter.copies) follow_form(copy);
    for (const auto& [copy, other] : parameter.ties) follow_form(other);
  }
  for (const auto& buffer : buffers_) {
    if (!joins(rows, buffer, group)) follow_buffer(buffer);
    tie(buffer);
  }
  if (group != nullptr) group->broadcast(rows);
  for (const auto& [own, copy, copy_options] : submodules_) {
    if (own->is_training() != copy->is_training()) copy->train(own->is_training());
    if (copy_options != nullptr) copy_options(*own, *copy);
  }
}

/// By memory, so that an owner of the other tensor keeps it.
void ModuleCopies::tie(const Followed& followed) {
  for (const auto& [copy, other] : followed.ties) {
    if (!same_memory(copy, other)) other.set_data(copy.variable_data());
  }
}

/// Whether the group sends the values: by variable_data(), which shares the memory and no version.
bool ModuleCopies::joins(std::vector<ReplicaRow>& rows, const Followed& followed, const ReplicaGroup* group) {
  if (group == nullptr) return false;
  ReplicaRow row{followed.own.variable_data()};
  for (const at::Tensor& copy : followed.copies) row.push_back(copy.variable_data());
  const bool fits = group->can_broadcast(row);
  if (fits) rows.push_back(std::move(row));
  return fits;
}

/// Versions do not show new values: torch's optimizers write into Tensor::data(), which has a version of its own.
void ModuleCopies::follow_parameter(const Followed& parameter) {
  const at::Tensor& own = parameter.own;
  for (const at::Tensor& copy : parameter.copies) {
    if (own.device() == copy.device()) {
      if (!same_memory(own, copy)) copy.set_data(own.variable_data());
    } else if (!same_form(own, copy)) {
      copy.set_data(own.variable_data().to(copy.device()));
    } else {
      copy.variable_data().copy_(own.variable_data(), /*non_blocking=*/true);
    }
  }
}

void ModuleCopies::follow_buffer(const Followed& buffer) {
  const at::Tensor& own = buffer.own;
  for (const at::Tensor& copy : buffer.copies) {
    // A sparse tensor has no memory to copy into: variable_data() would get new values, and the copy would not.
    if (!same_form(own, copy) || same_memory(own, copy) || !own.has_storage()) {
      copy.set_data(own.variable_data().to(copy.device(), /*non_blocking=*/false, /*copy=*/true));
    } else {  // always: batch normalisation and broadcasts write values without a new version
      copy.variable_data().copy_(own.variable_data());
    }
  }
}

/// The gradients of all tensors that are one tensor in the module become the copy's.
void ModuleCopies::gather_ties(const Followed& parameter) {
  for (const auto& [copy, other] : parameter.ties) {
    const at::Tensor gradient = std::exchange(other.mutable_grad(), at::Tensor());
    if (!gradient.defined()) continue;
    at::Tensor& into = copy.mutable_grad();
    if (into.defined()) {
      add(into, gradient);
    } else {
      into = gradient;
    }
  }
}

/// Whether the group adds the gradients, all of which exist; the copies have given theirs up then.
bool ModuleCopies::sums(std::vector<ReplicaRow>& rows, const Followed& parameter, const ReplicaGroup* group) {
  if (group == nullptr) return false;
  ReplicaRow row{parameter.own.grad()};
  for (const at::Tensor& copy : parameter.copies) row.push_back(copy.grad());
  if (!group->can_sum(row)) return false;
  for (const at::Tensor& copy : parameter.copies) copy.mutable_grad().reset();
  rows.push_back(std::move(row));
  return true;
}

std::vector<ModuleCopies::Sum> ModuleCopies::take_gradients(ReplicaGroup* group) {
  std::vector<Sum> sums;
  std::vector<ReplicaRow> rows;
  for (auto& parameter : parameters_) {
    gather_ties(parameter);
    if (ModuleCopies::sums(rows, parameter, group)) continue;
    at::Tensor& into = parameter.own.mutable_grad();
    Sum sum;
    for (const at::Tensor& copy : parameter.copies) {
      at::Tensor gradient = std::exchange(copy.mutable_grad(), at::Tensor());
      if (!gradient.defined()) continue;
      if (gradient.device() != parameter.own.device()) gradient = gradient.to(parameter.own.device());
      if (!into.defined()) {
        into = gradient;
      } else if (adds_in_slices(into, gradient)) {
        sum.gradients.push_back(gradient);
      } else {
        add(into, gradient);
      }
    }
    sum.into = into;
    if (!sum.gradients.empty()) sums.push_back(std::move(sum));
  }
  if (group != nullptr) group->sum(rows);
  return sums;
}

}  // namespace lrun::detail
