#pragma once

#include <memory>
#include <optional>
#include <string>

namespace lrun::launcher {

/// The entry points of NVIDIA's management library that lrun uses, by their stable ABI: no header of NVIDIA's is needed
/// to build. Opened at run time, closed with the last owner.
class NvmlLibrary {
 public:
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
    unsigned long long used_bytes;  ///< all bits set: not known
    unsigned gpu_instance;
    unsigned compute_instance;
  };

  /// True when the library is loaded, or something hints at a driver: its device nodes, or the file where the loader
  /// would find it. Cheap: the loader itself looks in some fifty places, a tenth of the time that a short run takes.
  static bool is_likely();

  /// Empty when the library is not there or lacks an entry point that a count needs.
  static std::optional<NvmlLibrary> open();

  /// What the driver calls a failure.
  [[nodiscard]] std::string words(Return code) const;

  // What a count needs: always there.
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle)(unsigned, Device*) = nullptr;
  Return (*uuid)(Device, char*, unsigned) = nullptr;

  // What older drivers lack: may be null.
  Return (*name)(Device, char*, unsigned) = nullptr;
  Return (*pci_info)(Device, PciInfo*) = nullptr;
  Return (*compute_mode)(Device, int*) = nullptr;
  Return (*compute_processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  Return (*mig_mode)(Device, unsigned* current, unsigned* pending) = nullptr;
  Return (*most_instances)(Device, unsigned*) = nullptr;
  Return (*instance)(Device, unsigned, Device*) = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*cuda_version)(int*) = nullptr;  ///< 12080 is 12.8
  Return (*p2p_status)(Device, Device, int capability, int* status) = nullptr;
  Return (*remapped_rows)(Device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                          unsigned* failure) = nullptr;
  Return (*ecc_errors)(Device, int type, int counter, unsigned long long*) = nullptr;

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
