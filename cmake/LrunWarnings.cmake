# Warnings for our own code, linked privately: users who embed the project never see them.
add_library(lrun_warnings INTERFACE)
target_compile_options(lrun_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -Wno-missing-field-initializers)  # aggregates whose members have defaults may be begun and left
if(LRUN_DEVELOPER)
  target_compile_options(lrun_warnings INTERFACE -Werror)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(lrun_warnings INTERFACE -Wno-subobject-linkage)  # it takes the files of a unit for headers
endif()
