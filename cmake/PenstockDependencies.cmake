# Finds the packages that Penstock builds on, and says which Debian packages
# bring them when one is missing.

function(penstock_require what found packages)
  if(NOT ${found})
    message(FATAL_ERROR
      "Penstock needs ${what}. On Debian: apt-get install ${packages}")
  endif()
endfunction()

# MLIR's package file is compatible with "22.1" only: ask for no version and
# check it here.
find_package(MLIR QUIET CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
penstock_require("MLIR 22" MLIR_FOUND
  "libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools clang-22 lld-22")
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "Penstock needs LLVM and MLIR 22, found "
    "${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}. On Debian: apt-get install "
    "libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

find_package(Protobuf QUIET)
penstock_require("Protocol Buffers" Protobuf_FOUND "libprotobuf-dev")
find_library(ONNX_LIBRARY onnx)
find_library(ONNX_PROTO_LIBRARY onnx_proto)
find_path(ONNX_INCLUDE_DIR onnx/onnx_pb.h)
if(NOT ONNX_LIBRARY OR NOT ONNX_PROTO_LIBRARY OR NOT ONNX_INCLUDE_DIR)
  penstock_require("libonnx" NO "libonnx-dev libprotobuf-dev")
endif()
find_library(DNNL_LIBRARY dnnl)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
if(NOT DNNL_LIBRARY OR NOT DNNL_INCLUDE_DIR)
  penstock_require("oneDNN" NO "libdnnl-dev")
endif()
find_path(XXHASH_INCLUDE_DIR xxhash.h)
find_path(JSON_INCLUDE_DIR nlohmann/json.hpp)
if(NOT XXHASH_INCLUDE_DIR OR NOT JSON_INCLUDE_DIR)
  penstock_require("xxHash and nlohmann-json" NO
    "libxxhash-dev nlohmann-json3-dev")
endif()
find_package(Threads REQUIRED)
