# cmake --install: tools in bin, compiler libraries in lib (penstock_tool and
# penstock_library say so), the runtime in lib and its headers in include/penstock
# (runtime/CMakeLists.txt says so); here the compiler's public headers, and those
# of dialects and passes with their .td files in include/penstock-compiler; and a
# CMake package with which other projects compile models, embed them, and build
# plug-ins.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/penstock
  DESTINATION include COMPONENT dev FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/dialects
  DESTINATION include/penstock-compiler COMPONENT dev
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/passes
  DESTINATION include/penstock-compiler COMPONENT dev
  FILES_MATCHING PATTERN "Passes.h" PATTERN "*Options.h" PATTERN "*Policy.h"
  PATTERN "*.td")
foreach(folder dialects passes)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/${folder}
    DESTINATION include/penstock-compiler COMPONENT dev
    FILES_MATCHING PATTERN "*.h.inc"
    PATTERN CMakeFiles EXCLUDE)
endforeach()
install(FILES
  ${PROJECT_SOURCE_DIR}/lib/Autodiff/DifferentiableOpInterface.td
  ${PROJECT_BINARY_DIR}/lib/Autodiff/DifferentiableOpInterface.h.inc
  DESTINATION include/penstock-compiler/lib/Autodiff COMPONENT dev)
# What operators are written with.
install(FILES ${PROJECT_SOURCE_DIR}/lib/Import/Operators/ConstantTensor.h
  ${PROJECT_SOURCE_DIR}/lib/Import/Operators/Emitter.h
  ${PROJECT_SOURCE_DIR}/lib/Import/Operators/NodeBinder.h
  ${PROJECT_SOURCE_DIR}/lib/Import/Operators/OperatorTable.h
  ${PROJECT_SOURCE_DIR}/lib/Import/Operators/Operators.def
  DESTINATION include/penstock-compiler/lib/Import/Operators COMPONENT dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION share/penstock
  PATTERN __pycache__ EXCLUDE)
set(pages ${CMAKE_INSTALL_DATADIR}/doc/penstock)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${pages})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${pages}
  RENAME copyright)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${pages}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png")

set(package_folder lib/cmake/Penstock)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/PenstockConfig.cmake.in
  ${PROJECT_BINARY_DIR}/PenstockConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PenstockConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PenstockConfig.cmake
  ${PROJECT_BINARY_DIR}/PenstockConfigVersion.cmake
  DESTINATION ${package_folder})
install(EXPORT PenstockCompiler NAMESPACE Penstock::
  DESTINATION ${package_folder} COMPONENT dev)
