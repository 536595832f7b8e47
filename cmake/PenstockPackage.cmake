# Debian packages, by cpack (scripts/package.sh):
#
#   penstock      the tools, the runtime, the CMake package, examples and pages:
#                 what compiles and trains models
#   penstock-dev  the libraries and headers of the compiler, for plug-ins
#   penstock-mpi  what programs load to run as processes under MPI
#
# Included before the folders, for the name of what says no component.

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME penstock)

function(penstock_configure_packages)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME penstock)
  set(CPACK_PACKAGE_VENDOR "Penstock")
  set(CPACK_PACKAGE_CONTACT "The Penstock maintainers")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/CompressManPages.cmake)
  set(CPACK_COMPONENTS_ALL penstock dev mpi)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
  set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
  set(CPACK_DEBIAN_PACKAGE_SECTION devel)
  set(same "penstock (= ${PROJECT_VERSION}-1)")

  # Shared libraries are found by what binaries load, but for LLVM's, which
  # stands on their path as a link of another package. Programs are linked by
  # the C++ driver, with GCC's OpenMP library, and load oneDNN when they start.
  set(CPACK_DEBIAN_PENSTOCK_PACKAGE_NAME penstock)
  set(CPACK_DEBIAN_PENSTOCK_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PENSTOCK_PACKAGE_DEPENDS "g++, libgomp1, libdnnl2, libllvm22")
  set(CPACK_DEBIAN_PENSTOCK_PACKAGE_SUGGESTS "penstock-dev, penstock-mpi")
  set(CPACK_COMPONENT_PENSTOCK_DESCRIPTION
    "compiler of ONNX models into pipelined training programs
Penstock cuts an ONNX model into stages, adds the backward pass and the weight
update of each, schedules them, and compiles all of it into an executable that
trains the model as a pipeline.")

  set(CPACK_DEBIAN_DEV_PACKAGE_NAME penstock-dev)
  set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${same}, libmlir-22-dev, mlir-22-tools, llvm-22-dev")
  set(CPACK_COMPONENT_DEV_DESCRIPTION
    "libraries and headers of the Penstock compiler
For plug-ins with schedules, methods and passes, and for tools of one's own.")

  set(CPACK_DEBIAN_MPI_PACKAGE_NAME penstock-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "${same}")
  set(CPACK_COMPONENT_MPI_DESCRIPTION
    "Open MPI and MPICH for programs of Penstock
Programs load one of these libraries to run as several processes, on one host or
many.")
  include(CPack)
endfunction()
