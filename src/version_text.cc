#include "version_text.h"

#include <features.h>

#include "lrun_build.h"
#include "lrun_version.h"

namespace lrun::launcher {

std::string version_text() {
  std::string text = "lrun " LRUN_VERSION "\n";
  if (*LRUN_COMMIT != '\0') text += "commit: " LRUN_COMMIT "\n";
  text += "build: " LRUN_BUILD "\n";
#ifdef __GLIBC__
  text += "glibc: " + std::to_string(__GLIBC__) + '.' + std::to_string(__GLIBC_MINOR__) + " or newer\n";
#endif
  return text;
}

}  // namespace lrun::launcher
