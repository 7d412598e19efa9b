# zig's C++ compiler: the program it makes needs glibc 2.28 and nothing else, on whatever machine it was compiled. Its own
# libc++ and glibc's symbols of that version are part of zig (PyPI's package ziglang).
#
#   LRUN_ZIG        the program zig
#   LRUN_PROCESSOR  x86_64 (default) or aarch64
if(CMAKE_C_COMPILER_LOADED OR CMAKE_CXX_COMPILER_LOADED)
  # Read again once project() is done: imported targets name this folder of this machine.
  list(APPEND CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES /usr/include)
  # Else Boost notes in the program where its headers lie, which is the folder of the build.
  add_compile_definitions(BOOST_DISABLE_CURRENT_LOCATION)
  return()
endif()
set(CMAKE_PROJECT_INCLUDE "${CMAKE_CURRENT_LIST_FILE}")
set(LRUN_ZIG "zig" CACHE FILEPATH "The program zig")
set(LRUN_PROCESSOR "x86_64" CACHE STRING "x86_64 or aarch64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LRUN_ZIG LRUN_PROCESSOR)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "${LRUN_PROCESSOR}")
set(CMAKE_C_COMPILER "${LRUN_ZIG}" cc -target "${LRUN_PROCESSOR}-linux-gnu.2.28")
set(CMAKE_CXX_COMPILER "${LRUN_ZIG}" c++ -target "${LRUN_PROCESSOR}-linux-gnu.2.28")

list(APPEND CMAKE_PREFIX_PATH "/usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake")

# The libraries that are headers only come from this machine, but none of its C library's headers beside them.
set(_headers "${CMAKE_CURRENT_LIST_DIR}/../build/wheel_headers")
file(MAKE_DIRECTORY "${_headers}")
foreach(_name boost fmt spdlog CLI nlohmann toml++)
  file(CREATE_LINK "/usr/include/${_name}" "${_headers}/${_name}" SYMBOLIC)
endforeach()
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES "${_headers}")
