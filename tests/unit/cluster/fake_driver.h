#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace lrun::launcher {

/// Holds the fake driver library of this folder loaded, so that lrun finds it under NVIDIA's name, and sets its
/// answers.
class FakeDriver : public testing::Test {
 protected:
  static constexpr unsigned kNone = ~0U;

  FakeDriver() : library_(dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL)) {}
  ~FakeDriver() override {
    if (library_ == nullptr) return;
    answers(0, 0, 0, kNone);
    divide(kNone);
    occupy(0, 0);
    trouble(' ');
    dlclose(library_);
  }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  void SetUp() override { ASSERT_NE(library_, nullptr) << dlerror(); }

  void answers(int init, int counting, unsigned count, unsigned lost) {
    call<void (*)(int, int, unsigned, unsigned)>("fake_nvml_set")(init, counting, count, lost);
  }
  /// GPU `gpu` is in MIG mode and has two instances.
  void divide(unsigned gpu) { call<void (*)(unsigned)>("fake_nvml_divide")(gpu); }
  /// All GPUs have NVML's compute mode `mode`; `pid` computes on GPU 0, unless it is 0.
  void occupy(int mode, unsigned pid) { call<void (*)(int, unsigned)>("fake_nvml_occupy")(mode, pid); }
  /// 'c' crashes at the start, 'h' hangs there.
  void trouble(char kind) { call<void (*)(char)>("fake_nvml_trouble")(kind); }
  int open_users() { return call<int (*)()>("fake_nvml_users")(); }

 private:
  template <class Function>
  Function call(const char* name) {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }

  void* library_;
};

}  // namespace lrun::launcher
