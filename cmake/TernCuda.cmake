# The CUDA runtime, and CUDA as a language of this build. Users get machine code for Hopper, and PTX that the driver
# compiles for what is newer.
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

# Functions marked constexpr serve both sides; warnings are those of the host's compiler. The standard is no CUDA_STANDARD:
# CMake 3.25 knows none of nvcc's beyond 17.
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
