#include "runtime/collectives/cuda_library.h"

#include <dlfcn.h>
#include <lrun/error.h>

#include <array>
#include <string>

namespace lrun {
namespace {

/// The folder that this code was loaded from, with a slash; empty when unknown.
std::string own_folder() {
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&make_with_cuda), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

/// The entry point; the library stays loaded, as CUDA does not survive being unloaded.
CudaEntryPoint load_entry_point() {
  void* library = nullptr;
  for (const std::string& path : {own_folder() + kCudaLibrary, std::string(kCudaLibrary)}) {
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    const char* reason = ::dlerror();
    throw Unsupported("backend 'nccl' needs " + std::string(kCudaLibrary) + ", which does not load (" +
                      (reason == nullptr ? "no reason given" : reason) + "); on the CPUs of one host use 'shm'");
  }
  void* symbol = ::dlsym(library, kCudaEntryPoint);
  if (symbol == nullptr) {
    throw Unsupported(std::string(kCudaLibrary) + " is of another version of liblrun: it has no " + kCudaEntryPoint);
  }
  return reinterpret_cast<CudaEntryPoint>(symbol);
}

}  // namespace

std::unique_ptr<Collectives> make_with_cuda(const GroupOptions& options) {
  static const CudaEntryPoint make = load_entry_point();
  std::array<char, 1024> error{};
  std::unique_ptr<Collectives> group(make(&options, error.data()));
  if (!group) throw Error("backend 'nccl': " + std::string(error.data()));
  return group;
}

}  // namespace lrun
