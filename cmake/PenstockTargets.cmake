# The kinds of targets of the compiler. The runtime has none of these: it does
# not see LLVM.

include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
# For the tablegen includes of our own .td files.
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})

# penstock_precompiled_header(NAME header...): a precompiled header, and a library
# that owns it and comes first. PENSTOCK_PRECOMPILED names the one of a folder's
# targets: headers of MLIR take most of the time of a build, and those that a file
# does not need cost it little.
function(penstock_precompiled_header name)
  # Written once: a new file would rebuild the owner at every configuration.
  set(source ${CMAKE_BINARY_DIR}/${name}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "")
  endif()
  add_library(${name} STATIC ${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(${name} PRIVATE -fno-exceptions)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

# Of dialects; of what works on them; of what also lowers them to LLVM's.
set(headers
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/Linalg/IR/Linalg.h>
  <mlir/Dialect/MemRef/IR/MemRef.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/Tensor/IR/Tensor.h>
  <mlir/IR/Builders.h>
  <mlir/IR/BuiltinOps.h>
  <mlir/IR/PatternMatch.h>
  <mlir/Pass/Pass.h>
  <mlir/Transforms/DialectConversion.h>
  <mlir/Transforms/GreedyPatternRewriteDriver.h>)
penstock_precompiled_header(PenstockDialectHeaders ${headers})
list(APPEND headers
  <mlir/Dialect/Math/IR/Math.h>
  <dialects/Kernel/Kernel.h>
  <dialects/Pipeline/Pipeline.h>)
penstock_precompiled_header(PenstockPassHeaders ${headers})
add_dependencies(PenstockPassHeaders PenstockKernelIncGen PenstockPipelineIncGen)
list(APPEND headers
  <mlir/Dialect/Affine/IR/AffineOps.h>
  <mlir/Dialect/GPU/IR/GPUDialect.h>
  <mlir/Dialect/LLVMIR/NVVMDialect.h>
  <mlir/Dialect/Vector/IR/VectorOps.h>)
penstock_precompiled_header(PenstockLoweringHeaders ${headers})
add_dependencies(PenstockLoweringHeaders PenstockPassHeaders)
set(PENSTOCK_PRECOMPILED PenstockPassHeaders)

function(penstock_compiler_target name)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>
    $<INSTALL_INTERFACE:include>
    $<INSTALL_INTERFACE:include/penstock-compiler>)
  target_compile_options(${name} PRIVATE -fno-exceptions)
  target_precompile_headers(${name} REUSE_FROM ${PENSTOCK_PRECOMPILED})
endfunction()

# penstock_library(NAME source... [LINK library...] [DEPENDS target...])
# Installed, for other projects (PenstockInstall.cmake).
function(penstock_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  penstock_compiler_target(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  install(TARGETS ${name} EXPORT PenstockCompiler
    ARCHIVE DESTINATION lib COMPONENT dev)
endfunction()

# penstock_tool(NAME source... [LINK library...])
function(penstock_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  penstock_compiler_target(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
  # Plug-ins call the functions of the tool that loads them.
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# Call before penstock_library in a folder with a Passes.td: generates
# Passes.h.inc with group name NAME.
function(penstock_pass_declarations name)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name=${name})
  add_public_tablegen_target(Penstock${name}PassesIncGen)
  add_dependencies(Penstock${name}PassesIncGen ${PENSTOCK_PRECOMPILED})
endfunction()

# penstock_unit_test(NAME source... [LINK library...] [PREFIX of its tests]): a
# GoogleTest program.
function(penstock_unit_test name)
  cmake_parse_arguments(ARG "" "PREFIX" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/unit)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${ARG_PREFIX}")
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_UNIT_TESTS ${name})
endfunction()

# penstock_tool_texts(NAME): the manual page and completions of a tool, which it
# makes of its own flags, beside it in the build and installed.
function(penstock_tool_texts name)
  set(folder ${PROJECT_BINARY_DIR}/share)
  set(man ${folder}/man/man1/${name}.1)
  set(bash ${folder}/bash-completion/completions/${name})
  set(zsh ${folder}/zsh/site-functions/_${name})
  set(fish ${folder}/fish/vendor_completions.d/${name}.fish)
  foreach(file ${man} ${bash} ${zsh} ${fish})
    get_filename_component(parent ${file} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(RELATIVE_PATH installed ${folder} ${parent})
    install(FILES ${file} DESTINATION share/${installed})
  endforeach()
  # Debian's zsh finds those of packages here, and nothing in site-functions below
  # /usr; below /usr/local it is the other way around.
  install(FILES ${zsh} DESTINATION share/zsh/vendor-completions)
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${name} --man > ${man}
    COMMAND ${name} --completion=bash > ${bash}
    COMMAND ${name} --completion=zsh > ${zsh}
    COMMAND ${name} --completion=fish > ${fish})
endfunction()
