# One switch for the sanitizers, seen by every unit of ours: LRUN_SANITIZE=address;undefined, thread, or empty.
# A mix of units with and without is the one thing sanitizers cannot stand, hence the directory-wide options.
set(LRUN_SANITIZE "" CACHE STRING "Sanitizers of every unit: a list such as address;undefined or thread; empty for none")
if(LRUN_SANITIZE)
  list(JOIN LRUN_SANITIZE "," _sanitizers)
  add_compile_options("-fsanitize=${_sanitizers}" -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${_sanitizers}")
  if("undefined" IN_LIST LRUN_SANITIZE)
    # vptr needs the type information of LibTorch's classes, part of which its libraries hide.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)  # g++ cannot tell any more once its own checks are in the way
  endif()
  if("thread" IN_LIST LRUN_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # Asio's fences are not modelled; the launcher, which uses Asio, has one thread
  endif()
endif()
if(LRUN_BUILD_FUZZERS AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libFuzzer is blind to units that do not report which branches they took.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
