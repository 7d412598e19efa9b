# Every package the project uses, in one place, with its reason.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)         # Asio: the event loop. Headers only; no Boost header in ours.
find_package(fmt REQUIRED)                # text formatting
find_package(spdlog REQUIRED)             # lrun's own log behind -v
find_package(CLI11 REQUIRED)              # parser core of the command line
find_package(nlohmann_json REQUIRED)      # plan, events, results

# The launcher is to start anywhere, with no run-time dependency but libc. Distributions ship fmt and spdlog as shared
# libraries only, so both are used header-only.
add_library(lrun_fmt INTERFACE)
target_link_libraries(lrun_fmt INTERFACE fmt::fmt-header-only)
add_library(lrun_spdlog INTERFACE)
get_target_property(_spdlog_include spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(lrun_spdlog SYSTEM INTERFACE ${_spdlog_include})
target_compile_definitions(lrun_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(lrun_spdlog INTERFACE lrun_fmt)

if(LRUN_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

if(NOT LRUN_BUILD_RUNTIME STREQUAL "OFF")
  include(LibTorch)
  if(LRUN_BUILD_RUNTIME STREQUAL "ON" AND NOT LibTorch_FOUND)
    message(FATAL_ERROR "liblrun was asked for and LibTorch is not found: run './dev build', or set LRUN_LIBTORCH")
  endif()
endif()
