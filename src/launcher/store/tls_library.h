#pragma once

#include <string>

#include "store/tls_interface.h"

namespace lrun::launcher {

/// liblrun_tls.so, once it was wanted. It stays loaded.
struct TlsLibrary {
  const TlsFunctions* functions = nullptr;  ///< null: it is of no use
  std::string why_not = {};
  std::string hint = {};  ///< what to do about it
};

/// Opened at the first call: from lrun's own folder, as after a build, from the folder of libraries that belongs to it,
/// as after an install, or from where the loader looks.
const TlsLibrary& tls_library();

}  // namespace lrun::launcher
