# cuBLASLt for the toolkit's version of CUDA: target cuBLASLt::cuBLASLt. Wheels contain libcublasLt.so.13 without the
# plain name.
include(${CMAKE_CURRENT_LIST_DIR}/NvidiaFolders.cmake)
tern_nvidia_folders(headers libraries)
find_path(cuBLASLt_INCLUDE_DIR cublasLt.h HINTS ${headers})
find_library(cuBLASLt_LIBRARY NAMES cublasLt libcublasLt.so.${CUDAToolkit_VERSION_MAJOR} HINTS ${libraries})
mark_as_advanced(cuBLASLt_INCLUDE_DIR cuBLASLt_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cuBLASLt REQUIRED_VARS cuBLASLt_LIBRARY cuBLASLt_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "CUDA ${CUDAToolkit_VERSION_MAJOR} needs its own: of that toolkit, or of pip's nvidia-cublas for it.")

if(cuBLASLt_FOUND AND NOT TARGET cuBLASLt::cuBLASLt)
  add_library(cuBLASLt::cuBLASLt UNKNOWN IMPORTED)
  set_target_properties(cuBLASLt::cuBLASLt PROPERTIES
    IMPORTED_LOCATION ${cuBLASLt_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${cuBLASLt_INCLUDE_DIR})
endif()
