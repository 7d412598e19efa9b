#include "runtime/dp/thread_generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <mutex>

namespace lrun::detail {
namespace {

constexpr c10::DispatchKey kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;  // no other user in a program

thread_local at::Generator* generator_of_thread = nullptr;

bool is_generator(const c10::Argument& argument) {
  const auto optional = argument.type()->cast<c10::OptionalType>();
  return optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

void give_generator(const c10::OperatorHandle& operation, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& arguments = operation.schema().arguments();
  const auto found = std::ranges::find_if(arguments, is_generator);
  c10::IValue& value = *(stack->end() - (arguments.end() - found));
  if (value.isNone() && generator_of_thread != nullptr) value = *generator_of_thread;
  operation.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
}

void register_kernels() {
  // Never destroyed: a program may end while a replica still runs.
  // Its own name for the file: the compiler's holds the folder of whoever built the library.
  constexpr const char* kFile = "thread_generator.cc";
  static auto& others = *new torch::Library(torch::Library::IMPL, "_", kKey, kFile, __LINE__);
  static auto& aten = *new torch::Library(torch::Library::IMPL, "aten", kKey, kFile, __LINE__);
  others.fallback(torch::CppFunction::makeFallthrough());
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.getNamespace() != "aten") continue;
    const auto operation = dispatcher.findSchema(name);
    if (!operation || std::ranges::none_of(operation->schema().arguments(), is_generator)) continue;
    const auto spelt = c10::toString(name);
    aten.impl(spelt.c_str(), torch::CppFunction::makeFromBoxedFunction<&give_generator>());
  }
}

void register_kernels_once() {
  static std::once_flag once;
  std::call_once(once, register_kernels);
}

// The key is not to be in effect before it has kernels.
c10::DispatchKey registered_key() {
  register_kernels_once();
  return kKey;
}

}  // namespace

ThreadGenerator::ThreadGenerator(at::Generator& generator) : before_(generator_of_thread), included_(registered_key()) {
  generator_of_thread = &generator;
}

ThreadGenerator::~ThreadGenerator() { generator_of_thread = before_; }

std::uint64_t draw_from_default_generator() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

std::uint64_t seed_of_stream(std::uint64_t seed, std::uint64_t index) {
  // The finaliser of splitmix64: every bit of the result depends on every bit of both.
  std::uint64_t bits = seed + (index + 1) * 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
  return (bits ^ (bits >> 31)) >> 32;
}

}  // namespace lrun::detail
