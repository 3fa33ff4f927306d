# cuBLASLt, of CUDA 12 or newer: target cuBLASLt::cuBLASLt. Wheels hold libcublasLt.so.13 without the plain name.
include(${CMAKE_CURRENT_LIST_DIR}/NvidiaFolders.cmake)
tern_nvidia_folders(headers libraries)
find_path(cuBLASLt_INCLUDE_DIR cublasLt.h HINTS ${headers})
find_library(cuBLASLt_LIBRARY NAMES cublasLt libcublasLt.so.13 libcublasLt.so.12 HINTS ${libraries})
mark_as_advanced(cuBLASLt_INCLUDE_DIR cuBLASLt_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cuBLASLt REQUIRED_VARS cuBLASLt_LIBRARY cuBLASLt_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "It belongs to the CUDA toolkit, and to pip's nvidia-cublas.")

if(cuBLASLt_FOUND AND NOT TARGET cuBLASLt::cuBLASLt)
  add_library(cuBLASLt::cuBLASLt UNKNOWN IMPORTED)
  set_target_properties(cuBLASLt::cuBLASLt PROPERTIES
    IMPORTED_LOCATION ${cuBLASLt_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${cuBLASLt_INCLUDE_DIR})
endif()
