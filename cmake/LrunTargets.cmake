# The three libraries, one folder of src each, which adds its sources.
#
#   lrun_core      src/core: what launcher and runtime share; no LibTorch, no Boost in its headers
#   lrun_launcher  src/launcher: everything else of the launcher but main()
#   lrun_runtime   src/runtime: liblrun.so, what training programs link (only with LibTorch)
add_library(lrun_core STATIC)
set_target_properties(lrun_core PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(lrun_core PUBLIC "${PROJECT_SOURCE_DIR}/src/core" "${PROJECT_BINARY_DIR}/generated")
target_compile_definitions(lrun_core PRIVATE BOOST_ASIO_DISABLE_CONCEPTS BOOST_ASIO_NO_DEPRECATED)
target_link_libraries(lrun_core PUBLIC lrun_fmt PRIVATE Boost::headers nlohmann_json::nlohmann_json lrun_warnings)

add_library(lrun_launcher STATIC)
target_include_directories(lrun_launcher PUBLIC "${PROJECT_SOURCE_DIR}/src/launcher")
target_link_libraries(lrun_launcher
  PUBLIC lrun_core
  PRIVATE lrun_spdlog lrun_toml CLI11::CLI11 nlohmann_json::nlohmann_json Threads::Threads ${CMAKE_DL_LIBS} lrun_warnings)

add_executable(lrun)
target_link_libraries(lrun PRIVATE lrun_launcher lrun_spdlog lrun_warnings)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT LRUN_SANITIZE)
  # Functions that nothing refers to are left out: of libstdc++, whose functions have a section each, half a megabyte.
  target_link_options(lrun PRIVATE -static-libstdc++ -static-libgcc LINKER:--gc-sections)
endif()

if(LibTorch_FOUND)
  add_library(lrun_runtime SHARED)
  add_library(lrun::runtime ALIAS lrun_runtime)
  target_include_directories(lrun_runtime PRIVATE "${PROJECT_SOURCE_DIR}/src")
  set_target_properties(lrun_runtime PROPERTIES
    OUTPUT_NAME lrun EXPORT_NAME runtime
    SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}"  # the major one alone from 1.0 on (docs/versions.md)
    BUILD_WITH_INSTALL_RPATH ON          # the bytes do not depend on the folder of the build
    VERIFY_INTERFACE_HEADER_SETS ON      # target all_verify_interface_header_sets: each header compiles alone
    LRUN_IS_INSTALLED ON)                # with no path of the builder's: the program finds LibTorch for it
  target_compile_options(lrun_runtime PRIVATE "-fmacro-prefix-map=${LibTorch_ROOT}/=")  # in the words of its assertions
  if(NOT LRUN_SANITIZE)
    target_link_options(lrun_runtime PRIVATE LINKER:-z,defs)  # what nobody defines is seen here, not in a program
  endif()
  target_compile_features(lrun_runtime PUBLIC cxx_std_20)
  # Its units find LibTorch's fmt before ours, and no library has the functions of that one.
  target_compile_definitions(lrun_runtime PRIVATE FMT_HEADER_ONLY=1)
  file(GLOB _headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/lrun/*.h")
  target_sources(lrun_runtime PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${_headers})
  target_link_libraries(lrun_runtime
    PUBLIC LibTorch::cpu
    PRIVATE "$<BUILD_INTERFACE:lrun_core>" "$<BUILD_INTERFACE:lrun_warnings>" ${CMAKE_DL_LIBS} Threads::Threads)

  lrun_add_precompiled()
  lrun_precompile(lrun_runtime)

  # The same objects for tests, which reach what liblrun.so hides.
  add_library(lrun_runtime_inside INTERFACE)
  target_sources(lrun_runtime_inside INTERFACE "$<TARGET_OBJECTS:lrun_runtime>")
  target_include_directories(lrun_runtime_inside INTERFACE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(lrun_runtime_inside INTERFACE lrun_core LibTorch::cpu ${CMAKE_DL_LIBS} Threads::Threads)
endif()

file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/lrun_version.h" CONTENT
"#pragma once
/// The one version of the project, from project() in CMakeLists.txt.
#define LRUN_VERSION \"@PROJECT_VERSION@\"
" @ONLY)

# The rest of `lrun --version` is in a header that one small unit of the program sees: with a commit that unit is compiled,
# and lrun is linked. `git archive` writes the commit into cmake/commit.txt; in a clone git is asked, when
# the build is configured and after each commit.
file(STRINGS "${PROJECT_SOURCE_DIR}/cmake/commit.txt" LRUN_COMMIT LIMIT_COUNT 1)
if(LRUN_COMMIT MATCHES "^[0-9a-f]+$")
  string(SUBSTRING "${LRUN_COMMIT}" 0 12 LRUN_COMMIT)
elseif(EXISTS "${PROJECT_SOURCE_DIR}/.git")  # else git might tell of a project that this one lies in
  execute_process(COMMAND git describe --always --exclude=* --abbrev=12 --dirty WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    OUTPUT_VARIABLE LRUN_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git rev-parse --git-path logs/HEAD WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    OUTPUT_VARIABLE _log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  get_filename_component(_log "${_log}" ABSOLUTE BASE_DIR "${PROJECT_SOURCE_DIR}")
  if(EXISTS "${_log}" AND NOT IS_DIRECTORY "${_log}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_log}")
  endif()
else()
  set(LRUN_COMMIT "")
endif()
set(LRUN_BUILD "${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_SYSTEM_PROCESSOR}")
if(LRUN_SANITIZE)
  list(JOIN LRUN_SANITIZE " and " _sanitizers)
  string(APPEND LRUN_BUILD ", with sanitizers: ${_sanitizers}")
endif()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/lrun_build.h" CONTENT
"#pragma once
#define LRUN_COMMIT \"@LRUN_COMMIT@\"
#define LRUN_BUILD \"@LRUN_BUILD@\"
" @ONLY)
