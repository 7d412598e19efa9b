# The files of `cmake --install`: the program with man page, completions and notices, and where it was built the library with
# headers and a CMake package (find_package(lrun), lrun::runtime).
include(CMakePackageConfigHelpers)
set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/lrun")

# product: all that is installed, without tests, examples and benchmarks.
add_custom_target(product DEPENDS lrun)
# Where some targets alone were built: lrun and liblrun.so are needed, what they open at run time is left out. First of all
# rules, so that it is said before anything is copied.
set(_needed "$<TARGET_FILE:lrun>")
set(_opened "")
if(TARGET lrun_runtime)
  list(APPEND _needed "$<TARGET_FILE:lrun_runtime>")
endif()
if(TARGET lrun_cuda)
  list(APPEND _opened "$<TARGET_FILE:lrun_cuda>")
endif()
install(CODE "
  set(missing \"\")
  foreach(file ${_needed})
    if(NOT EXISTS \"\${file}\")
      list(APPEND missing \"\${file}\")
    endif()
  endforeach()
  list(JOIN missing \", \" missing)
  if(missing)
    message(FATAL_ERROR \"not built: \${missing}; 'cmake --build ${PROJECT_BINARY_DIR} --target product' builds all that is installed\")
  endif()
  foreach(file ${_opened})
    if(NOT EXISTS \"\${file}\")
      list(APPEND missing \"\${file}\")
    endif()
  endforeach()
  list(JOIN missing \", \" missing)
  if(missing)
    message(NOTICE \"left out, as it was not built: \${missing} ('cmake --build ${PROJECT_BINARY_DIR} --target product' builds all)\")
  endif()")
install(TARGETS lrun EXPORT lrunTargets RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET lrun_runtime)
  add_dependencies(product lrun_runtime)
  install(TARGETS lrun_runtime EXPORT lrunTargets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  if(TARGET lrun_cuda)
    add_dependencies(product lrun_cuda)
    install(TARGETS lrun_cuda LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" OPTIONAL)  # where liblrun looks for it
  endif()
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/LibTorch.cmake" DESTINATION "${_package}")
endif()
install(EXPORT lrunTargets NAMESPACE lrun:: DESTINATION "${_package}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/lrunConfig.cmake.in" "${PROJECT_BINARY_DIR}/lrunConfig.cmake"
  INSTALL_DESTINATION "${_package}" NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/lrunConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/lrunConfig.cmake" "${PROJECT_BINARY_DIR}/lrunConfigVersion.cmake"
  DESTINATION "${_package}")

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# Shells look for completions under the name of the program.
function(_lrun_install_if_there file folder name)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${file}")
    install(FILES "${PROJECT_SOURCE_DIR}/${file}" DESTINATION "${folder}" RENAME "${name}")
  endif()
endfunction()
_lrun_install_if_there(man/lrun.1 "${CMAKE_INSTALL_MANDIR}/man1" lrun.1)
_lrun_install_if_there(docs/for_programs.md "${CMAKE_INSTALL_DOCDIR}" for_programs.md)
_lrun_install_if_there(completions/lrun.bash "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" lrun)
_lrun_install_if_there(completions/_lrun "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" _lrun)
_lrun_install_if_there(completions/lrun.fish "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" lrun.fish)
