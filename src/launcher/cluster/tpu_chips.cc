#include "cluster/tpu_chips.h"

#include <algorithm>
#include <iterator>

#include "cluster/system_file.h"

namespace lrun::launcher {
namespace {

constexpr long kGoogle = 0x1ae0;
constexpr long kTwoCores = 0x0027;  // v2 and v3; later chips have one core, or two that act as one
/// v4, v5p, v5e, v6e, TPU7x, and one without a public name.
constexpr long kOneCore[] = {0x005e, 0x0062, 0x0063, 0x006f, 0x0076, 0x0056};

}  // namespace

TpuInventory find_tpu_chips(const std::string& root) {
  const std::string devices = root + "/sys/bus/pci/devices/";
  TpuInventory found{.asked = true};
  for (const std::string& address : list_names(devices)) {
    if (read_number(devices + address + "/vendor", 0) != kGoogle) continue;
    const long device = read_number(devices + address + "/device", 0);
    const bool is_chip = std::find(std::begin(kOneCore), std::end(kOneCore), device) != std::end(kOneCore);
    if (device == kTwoCores) found.cores_per_chip = 2;
    if (is_chip || device == kTwoCores) ++found.chips;
  }
  return found;
}

}  // namespace lrun::launcher
