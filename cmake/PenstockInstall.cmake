# cmake --install: tools in bin (penstock_tool says so), the runtime in lib, its
# headers and the compiler's public ones in include/penstock, and a CMake package
# with which other projects compile models and embed them. Comes last: it looks
# at the targets of the whole tree.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/penstock
  ${PROJECT_SOURCE_DIR}/runtime/include/penstock
  DESTINATION include FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/penstock)

set(PENSTOCK_RUNTIME_FILE "")
if(TARGET PenstockRuntime)
  # penstockc looks for it beside its own folder: ../lib.
  install(TARGETS PenstockRuntime ARCHIVE DESTINATION lib)
  get_target_property(name PenstockRuntime OUTPUT_NAME)
  if(NOT name)
    set(name PenstockRuntime)
  endif()
  set(PENSTOCK_RUNTIME_FILE
    ${CMAKE_STATIC_LIBRARY_PREFIX}${name}${CMAKE_STATIC_LIBRARY_SUFFIX})
endif()

set(package_folder lib/cmake/Penstock)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/PenstockConfig.cmake.in
  ${PROJECT_BINARY_DIR}/PenstockConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PenstockConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PenstockConfig.cmake
  ${PROJECT_BINARY_DIR}/PenstockConfigVersion.cmake
  DESTINATION ${package_folder})
