# Reading ATen's headers is half of compiling a unit that sees LibTorch. With LRUN_PRECOMPILE they are read once, in the
# target lrun_precompiled. All targets share the result, whatever their level of optimisation, because they have its -fPIC
# and its macros. (Only g++ allows that. -O0 is another macro: tests with a sanitizer do without.)

# lrun_precompile(target...): the units of these targets that see LibTorch begin with the precompiled header.
function(lrun_precompile)
  if(NOT LRUN_PRECOMPILE OR NOT TARGET lrun_precompiled)
    return()
  endif()
  foreach(target ${ARGN})
    target_precompile_headers(${target} REUSE_FROM lrun_precompiled)
    target_compile_options(${target} PRIVATE -fPIC -fpch-preprocess)  # the last for ccache
    target_compile_definitions(${target} PRIVATE FMT_HEADER_ONLY=1)
  endforeach()
endfunction()

# lrun_skip_precompile(target): the units of the target that do not see LibTorch, by what they and their own headers
# include, do without: loading the result takes them half a second.
function(lrun_skip_precompile target)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    set(lines "")
    string(REGEX REPLACE "\\.cc$" ".h" header "${source}")
    foreach(file "${source}" "${header}")
      if(EXISTS "${file}")
        file(STRINGS "${file}" found REGEX "^#include <(ATen|c10|lrun|torch)/")
        list(APPEND lines ${found})
      endif()
    endforeach()
    if(NOT lines)
      set_property(SOURCE "${source}" TARGET_DIRECTORY ${target} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# lrun_add_precompiled(): makes the target lrun_precompiled, where that is asked for and possible.
function(lrun_add_precompiled)
  if(NOT LRUN_PRECOMPILE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  set(unit "${PROJECT_BINARY_DIR}/generated/precompiled.cc")
  file(CONFIGURE OUTPUT "${unit}" CONTENT "// A target has a unit.\n")
  add_library(lrun_precompiled OBJECT "${unit}")
  set_target_properties(lrun_precompiled PROPERTIES UNITY_BUILD OFF)
  target_compile_options(lrun_precompiled PRIVATE -fPIC -fpch-preprocess "-fmacro-prefix-map=${LibTorch_ROOT}/=")
  target_compile_definitions(lrun_precompiled PRIVATE FMT_HEADER_ONLY=1)
  target_link_libraries(lrun_precompiled PRIVATE LibTorch::cpu lrun_warnings)
  target_precompile_headers(lrun_precompiled PRIVATE <ATen/ATen.h>)
endfunction()
