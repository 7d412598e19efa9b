# Every package the project uses, in one place, with its reason.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)         # Asio: the event loop; Process: helper programs; Beast: HTTP. Headers only, none of them in ours.
find_package(fmt REQUIRED)                # text formatting
find_package(spdlog REQUIRED)             # lrun's own log behind -v
find_package(CLI11 REQUIRED)              # parser core of the command line
find_package(nlohmann_json REQUIRED)      # plan, events, results
find_package(tomlplusplus REQUIRED)       # lrun.toml: a value knows its line. Header-only, one translation unit.

# The launcher is to start anywhere, with no run-time dependency but libc. Distributions ship fmt and spdlog as shared
# libraries only. spdlog is used header-only; fmt is compiled once, in src/core/base/fmt_library.cc: header-only, g++ leaves a
# copy of its number formatting in every unit, 0.9 MB in all. That file knows what fmt 9 needs; any other is header-only.
add_library(lrun_fmt INTERFACE)
get_target_property(_fmt_include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(lrun_fmt SYSTEM INTERFACE ${_fmt_include})
if(fmt_VERSION VERSION_LESS 9 OR fmt_VERSION VERSION_GREATER_EQUAL 10)
  target_compile_definitions(lrun_fmt INTERFACE FMT_HEADER_ONLY=1)
endif()
add_library(lrun_spdlog INTERFACE)
get_target_property(_spdlog_include spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(lrun_spdlog SYSTEM INTERFACE ${_spdlog_include})
target_compile_definitions(lrun_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(lrun_spdlog INTERFACE lrun_fmt)
get_target_property(_toml_include tomlplusplus::tomlplusplus INTERFACE_INCLUDE_DIRECTORIES)
add_library(lrun_toml INTERFACE)
target_include_directories(lrun_toml SYSTEM INTERFACE ${_toml_include})

if(LRUN_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_package(OpenSSL 3.0 QUIET)  # servers that speak TLS, for the tests of clients
endif()

# A package that was asked for and is missing is an error; one that was not asked for is left out.
set(LibTorch_FOUND FALSE)
if(NOT LRUN_BUILD_RUNTIME STREQUAL "OFF")
  include(LibTorch)
  if(LRUN_BUILD_RUNTIME STREQUAL "ON" AND NOT LibTorch_FOUND)
    message(FATAL_ERROR "liblrun was asked for, but no LibTorch: ${LibTorch_REASON}; './dev build' fetches one")
  endif()
endif()
# LibTorch's own gloo, whose headers the wheel leaves out: Debian's libgloo-dev has them. Without them liblrun refuses
# the backend.
set(LRUN_WITH_GLOO FALSE)
if(LibTorch_FOUND)
  find_path(LRUN_GLOO_INCLUDE gloo/algorithm.h)
  mark_as_advanced(LRUN_GLOO_INCLUDE)
  if(LRUN_GLOO_INCLUDE)
    set(LRUN_WITH_GLOO TRUE)
  else()
    message(STATUS "gloo's headers not found (libgloo-dev): liblrun is built without the backend 'gloo'")
  endif()
endif()
set(LRUN_WITH_CUDA FALSE)
if(LibTorch_FOUND AND TARGET LibTorch::cuda AND LibTorch_NCCL_FOUND AND NOT LRUN_BUILD_CUDA STREQUAL "OFF")
  set(LRUN_WITH_CUDA TRUE)
elseif(LRUN_BUILD_CUDA STREQUAL "ON")
  message(FATAL_ERROR "CUDA was asked for: it needs a LibTorch with CUDA, the headers of the CUDA toolkit (CUDA_HOME) and "
    "the nccl.h of the version that LibTorch was built with")
endif()
