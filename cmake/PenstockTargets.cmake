# The kinds of targets of the compiler. The runtime has none of these: it does
# not see LLVM.

include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
# For the tablegen includes of our own .td files.
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})

# One precompiled header for all of the compiler; its owner comes first.
# Written once: a new file would rebuild the owner at every configuration.
if(NOT EXISTS ${CMAKE_BINARY_DIR}/pch.cpp)
  file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
endif()
add_library(PenstockPch STATIC ${CMAKE_BINARY_DIR}/pch.cpp)
target_compile_options(PenstockPch PRIVATE -fno-exceptions)
target_precompile_headers(PenstockPch PRIVATE
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

function(penstock_compiler_target name)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>
    $<INSTALL_INTERFACE:include>
    $<INSTALL_INTERFACE:include/penstock-compiler>)
  target_compile_options(${name} PRIVATE -fno-exceptions)
  target_precompile_headers(${name} REUSE_FROM PenstockPch)
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
  add_dependencies(Penstock${name}PassesIncGen PenstockPch)
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
