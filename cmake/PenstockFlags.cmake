# Flags of every target.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# The packaged MLIR is built with NDEBUG, and the layout of its classes depends
# on it: code without it reads uninitialized members. PENSTOCK_ASSERT (see
# penstock/Support/Assert.h) is our own, switched by PENSTOCK_ASSERTIONS.
add_compile_definitions(NDEBUG)
option(PENSTOCK_ASSERTIONS "Check PENSTOCK_ASSERT" OFF)
if(PENSTOCK_ASSERTIONS)
  add_compile_definitions(PENSTOCK_ASSERTIONS)
endif()

# Set here and not by the target property: executables share the precompiled
# header of the libraries, which would be PIC there and PIE here.
add_compile_options(-fPIC)
add_compile_options(-Wall -Wextra -Werror -Wno-unused-parameter -ffp-contract=off)
option(PENSTOCK_USE_CCACHE "Compile through ccache when it is installed" ON)
find_program(CCACHE_PROGRAM ccache)
if(PENSTOCK_USE_CCACHE AND CCACHE_PROGRAM)
  # A precompiled header is only a hit with these sloppiness settings.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${CCACHE_PROGRAM})
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options(-Wno-unknown-warning-option
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  # lld links a tool in a tenth of the time of GNU ld.
  find_program(PENSTOCK_LLD NAMES ld.lld ld.lld-22 HINTS ${LLVM_TOOLS_BINARY_DIR})
  if(PENSTOCK_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

set(PENSTOCK_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined")
if(PENSTOCK_SANITIZE)
  add_compile_options(-fsanitize=${PENSTOCK_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PENSTOCK_SANITIZE})
endif()

# An installed tool finds the packaged libMLIR where the build found it: its
# folder is not on the loader's path.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
