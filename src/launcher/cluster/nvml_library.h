#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lrun::launcher {

/// The entry points of NVIDIA's management library that lrun uses, with their types. They follow its stable ABI, so
/// that no header of NVIDIA is needed to build.
struct NvmlEntryPoints {
  using Return = int;
  using Device = struct OpaqueDevice*;
  static constexpr Return kSuccess = 0;
  static constexpr Return kInsufficientSize = 7;
  static constexpr Return kDriverNotLoaded = 9;
  static constexpr Return kLibraryNotFound = 12;
  static constexpr Return kGpuIsLost = 15;

  /// nvmlPciInfo_t since 10.0.
  struct PciInfo {
    char legacy_address[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned subsystem_id;
    char address[32];
  };
  /// nvmlProcessInfo_t of the entry points _v2 and _v3.
  struct ProcessInfo {
    unsigned pid;
    unsigned long long used_bytes;  ///< all bits set: unknown
    unsigned gpu_instance;
    unsigned compute_instance;

    /// -1: unknown.
    [[nodiscard]] int memory_mib() const { return used_bytes == ~0ULL ? -1 : static_cast<int>(used_bytes >> 20U); }
  };

  /// nvmlProcessUtilizationSample_t.
  struct ProcessSample {
    unsigned pid;
    unsigned long long time_us;  ///< since the epoch
    unsigned compute_percent;
    unsigned memory_percent;
    unsigned encoder_percent;
    unsigned decoder_percent;
  };
  /// nvmlUtilization_t.
  struct Rates {
    unsigned compute_percent;
    unsigned memory_percent;
  };

  // Counting needs these: never null.
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle)(unsigned, Device*) = nullptr;
  Return (*uuid)(Device, char*, unsigned) = nullptr;

  // Older drivers lack some of these: may be null.
  Return (*name)(Device, char*, unsigned) = nullptr;
  Return (*pci_info)(Device, PciInfo*) = nullptr;
  Return (*compute_mode)(Device, int*) = nullptr;
  Return (*compute_processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  Return (*process_samples)(Device, ProcessSample*, unsigned*, unsigned long long since_us) = nullptr;
  Return (*rates)(Device, Rates*) = nullptr;
  Return (*mig_mode)(Device, unsigned* current, unsigned* pending) = nullptr;
  Return (*most_instances)(Device, unsigned*) = nullptr;
  Return (*instance)(Device, unsigned, Device*) = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*cuda_version)(int*) = nullptr;  ///< 12080 is 12.8
  Return (*p2p_status)(Device, Device, int capability, int* status) = nullptr;
  Return (*remapped_rows)(Device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                          unsigned* failure) = nullptr;
  Return (*ecc_errors)(Device, int type, int counter, unsigned long long*) = nullptr;
};

/// The library, which is opened at run time and closed with its owner.
class NvmlLibrary : public NvmlEntryPoints {
 public:
  /// True when the library is loaded, or the machine has a trace of a driver: its device nodes, or the library where
  /// the loader would find it. This is cheap. The loader itself looks in some fifty places, which takes a tenth of the
  /// time of a short run.
  static bool is_likely();

  /// \return empty when the library is not installed or lacks an entry point that counting needs.
  static std::optional<NvmlLibrary> open();

  /// The driver's text for a failure.
  [[nodiscard]] std::string error_text(Return code) const;

  /// The processes that compute on the device, `most` of them; empty where the driver does not say.
  [[nodiscard]] std::vector<ProcessInfo> processes_on(Device device, unsigned most) const;

 private:
  struct Close {
    void operator()(void* library) const;
  };

  template <class Function>
  bool find(Function& function, const char* symbol);
  bool find_all();

  std::unique_ptr<void, Close> library_;
};

}  // namespace lrun::launcher
