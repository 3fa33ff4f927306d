# Adds the CUDA runtime, and CUDA as a language of this build. By default the programs contain machine code for Hopper,
# and PTX that the driver compiles for newer devices.
if(TERN_CUDA_EMULATED)
  add_library(tern_cuda_emulation STATIC ${PROJECT_SOURCE_DIR}/tests/emulation/fibers.cpp)
  target_include_directories(tern_cuda_emulation PUBLIC ${PROJECT_SOURCE_DIR}/tests/emulation)
  target_compile_features(tern_cuda_emulation PUBLIC cxx_std_20)
  set(tern_cuda_runtime $<BUILD_INTERFACE:tern_cuda_emulation>)
else()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 90-real 90-virtual CACHE STRING "CUDA architectures to hold code for")
  endif()
  enable_language(CUDA)
  tern_find_package(CUDAToolkit 12.8)
  set(tern_cuda_runtime CUDA::cudart_static)
endif()

# Device code can call functions that are marked constexpr. The warnings are those of the host's compiler. CUDA_STANDARD
# is not set, because CMake 3.25 knows no standard of nvcc beyond 17.
function(tern_cuda_options target)
  if(TERN_CUDA_EMULATED)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cu$")
    set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
  else()
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra>)
  endif()
endfunction()

# tern_cuda_objects(target [SOURCES glob...] [LINKS target...])
# The CUDA code of a library, as separate objects in the library. So nothing else is compiled again if a build changes
# to CUDA.
function(tern_cuda_objects target)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_SOURCES})
  add_library(${target}_cuda OBJECT ${sources})
  set_target_properties(${target}_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
  tern_cuda_options(${target}_cuda)
  target_include_directories(${target}_cuda PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_compile_options(${target}_cuda PRIVATE $<TARGET_PROPERTY:${target},COMPILE_OPTIONS>)
  target_compile_features(${target}_cuda PRIVATE cxx_std_20)
  target_link_libraries(${target}_cuda PRIVATE ${ARG_LINKS})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_cuda>)
  list(TRANSFORM ARG_LINKS REPLACE "(.+)" "$<LINK_ONLY:\\1>")
  target_link_libraries(${target} INTERFACE ${ARG_LINKS})
endfunction()
