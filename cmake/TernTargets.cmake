# tern_find_package(PACKAGE [VERSION] [COMPONENTS name...])
# Finds a required package. The installed package file also finds it, because static libraries need their own libraries
# at the last link.
macro(tern_find_package)
  find_package(${ARGV} REQUIRED)
  string(REPLACE ";" " " tern_dependency "find_dependency(${ARGV})")
  set_property(GLOBAL APPEND_STRING PROPERTY TERN_DEPENDENCIES "${tern_dependency}\n")
endmacro()

# tern_library(NAME [AS folder] [SOURCES glob...] [ROOMS folder...] [LINKS target...] [PRIVATE_LINKS target...])
# The static library `tern_NAME` of the current folder, with the alias `tern::NAME`. Without SOURCES, it has every .cpp
# file of the folder. Headers directly in the folder, or in one of its ROOMS, are public and installed. Headers in other
# folders are not. They are installed as <tern/folder/...>. AS gives another folder name than that of the source tree.
function(tern_library name)
  cmake_parse_arguments(ARG "" "AS" "SOURCES;ROOMS;LINKS;PRIVATE_LINKS" ${ARGN})
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES *.cpp)
  endif()
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_SOURCES})
  add_library(tern_${name} STATIC ${sources})
  # The files that stand in for CUDA are compiled alone. So the other files are compiled together in the same way with
  # CUDA and without.
  set(stand_ins ${sources})
  list(FILTER stand_ins INCLUDE REGEX "/no_[^/]*/[^/]*$")
  if(stand_ins)
    set_source_files_properties(${stand_ins} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  add_library(tern::${name} ALIAS tern_${name})
  set_target_properties(tern_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(tern_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(tern_${name} PUBLIC cxx_std_20)
  target_link_libraries(tern_${name} PUBLIC ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
  tern_compile_options(tern_${name})

  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(ARG_AS)
    set(folder ${ARG_AS})
  endif()
  if(NOT TERN_INSTALL)
    return()
  endif()
  install(TARGETS tern_${name} EXPORT tern)
  foreach(room . ${ARG_ROOMS})
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.h)
    install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tern/${folder}/${room})
  endforeach()
endfunction()

# Sets the warnings for tern's own code. Products and sums are never fused, as on x86-64 without -mfma, so that random
# numbers and codecs give the same bits on every processor. The kernels fuse: see kernels/CMakeLists.txt.
function(tern_compile_options target)
  if(NOT tern_is_x86)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
  endif()
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-unknown-pragmas>)
endfunction()
