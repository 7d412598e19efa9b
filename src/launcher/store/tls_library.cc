#include "store/tls_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "lrun_version.h"

namespace lrun::launcher {
namespace {

std::string own_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

std::string reason() {
  const char* const words = ::dlerror();
  return words == nullptr ? "no reason given" : words;
}

TlsLibrary use(void* library) {
  const std::string name = kTlsLibrary;
  const auto entry = reinterpret_cast<TlsEntryPoint>(::dlsym(library, kTlsEntryPoint));
  const TlsFunctions* const functions = entry == nullptr ? nullptr : entry();
  if (functions != nullptr && std::string_view(functions->version) == LRUN_VERSION) return {.functions = functions};
  return {.why_not = name + " is from another version of lrun",
          .hint = "install lrun and its libraries from one build"};
}

TlsLibrary load() {
  const std::string name = kTlsLibrary;
  const std::string own = own_folder();
  for (const std::string& file : {own + "/" + name, own + "/" LRUN_LIBRARY_FOLDER "/" + name}) {
    if (::access(file.c_str(), F_OK) != 0) continue;  // a file that is there and does not load is the better reason
    if (void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return use(library);
    return {.why_not = "TLS needs " + name + ", which cannot be loaded: " + reason(),
            .hint = "install OpenSSL 3 (Debian: libssl3)"};
  }
  if (void* const library = ::dlopen(kTlsLibrary, RTLD_NOW | RTLD_LOCAL); library != nullptr) return use(library);
  return {.why_not = "TLS needs " + name + ", which is neither next to lrun in '" + own + "' nor in its library folder",
          .hint = "build and install lrun where OpenSSL 3 is available (Debian: libssl-dev)"};
}

}  // namespace

const TlsLibrary& tls_library() {
  static const TlsLibrary library = load();
  return library;
}

}  // namespace lrun::launcher
