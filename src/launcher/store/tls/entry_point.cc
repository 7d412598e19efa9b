#include <algorithm>
#include <new>

#include "lrun_version.h"
#include "store/tls/openssl_end.h"

namespace lrun::launcher {
namespace {

constexpr TlsFunctions kFunctions = {
    .version = LRUN_VERSION,
    .begin = [](const TlsQuestion* question) { return new (std::nothrow) TlsEnd(*question); },
    .end = [](TlsEnd* end) { delete end; },
    .feed =
        [](TlsEnd* end, const char* bytes, std::size_t size) {
          end->feed({bytes, size});
        },
    .give =
        [](TlsEnd* end, const char* text, std::size_t size) {
          end->give({text, size});
        },
    .take_output = [](TlsEnd* end, char* bytes, std::size_t most) { return end->take_output(bytes, most); },
    .take_text =
        [](TlsEnd* end, char* text, std::size_t most) {
          const std::size_t count = end->text().copy(text, most);
          end->text().erase(0, count);
          return count;
        },
    .state = [](const TlsEnd* end) { return end->state(); },
    .fault = [](const TlsEnd* end) { return end->fault(); },
    .why = [](const TlsEnd* end) { return end->why().c_str(); },
};

}  // namespace
}  // namespace lrun::launcher

/// Has the name in kTlsEntryPoint.
extern "C" __attribute__((visibility("default"))) const lrun::launcher::TlsFunctions* lrun_tls_functions_v1() {
  return &lrun::launcher::kFunctions;
}
