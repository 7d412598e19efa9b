// Functions of CUDA's runtime that LibTorch names and that no test here needs: so that its libraries load. A call is
// reported.
#include <string>

#include "runtime/stand_in/script.h"

// NOLINTBEGIN
#define LRUN_NOT_MODELLED(function)                                                                  \
  extern "C" int function() {                                                                        \
    lrun::test::stand_in::report_misuse(std::string(#function) + " is called, and is not modelled"); \
    return 801; /* cudaErrorNotSupported */                                                          \
  }

LRUN_NOT_MODELLED(cudaDeviceEnablePeerAccess)
LRUN_NOT_MODELLED(cudaDeviceGetDefaultMemPool)
LRUN_NOT_MODELLED(cudaEventElapsedTime)
LRUN_NOT_MODELLED(cudaFreeAsync)
LRUN_NOT_MODELLED(cudaGetDriverEntryPointByVersion)
LRUN_NOT_MODELLED(cudaGraphNodeGetDependencies)
LRUN_NOT_MODELLED(cudaIpcCloseMemHandle)
LRUN_NOT_MODELLED(cudaIpcGetMemHandle)
LRUN_NOT_MODELLED(cudaIpcOpenMemHandle)
LRUN_NOT_MODELLED(cudaMallocAsync)
LRUN_NOT_MODELLED(cudaMemPoolGetAttribute)
LRUN_NOT_MODELLED(cudaMemPoolSetAccess)
LRUN_NOT_MODELLED(cudaMemPoolSetAttribute)
LRUN_NOT_MODELLED(cudaMemPoolTrimTo)
LRUN_NOT_MODELLED(cudaMemcpyPeerAsync)
LRUN_NOT_MODELLED(cudaStreamGetCaptureInfo)
// NOLINTEND
