# cuDNN, version 9 or newer: target cuDNN::cuDNN. Wheels contain libcudnn.so.9 without the plain name.
include(${CMAKE_CURRENT_LIST_DIR}/NvidiaFolders.cmake)
tern_nvidia_folders(headers libraries)
find_path(cuDNN_INCLUDE_DIR cudnn.h HINTS ${headers})
find_library(cuDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${libraries})
mark_as_advanced(cuDNN_INCLUDE_DIR cuDNN_LIBRARY)

if(cuDNN_INCLUDE_DIR)
  file(STRINGS ${cuDNN_INCLUDE_DIR}/cudnn_version.h version_lines
    REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+")
  string(REGEX REPLACE "[^0-9]+" "." cuDNN_VERSION "${version_lines}")
  string(REGEX REPLACE "^\\.|\\.$" "" cuDNN_VERSION "${cuDNN_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cuDNN REQUIRED_VARS cuDNN_LIBRARY cuDNN_INCLUDE_DIR VERSION_VAR cuDNN_VERSION
  REASON_FAILURE_MESSAGE "It is in NVIDIA's repository, and in pip's nvidia-cudnn-cu${CUDAToolkit_VERSION_MAJOR}.")

if(cuDNN_FOUND AND NOT TARGET cuDNN::cuDNN)
  add_library(cuDNN::cuDNN UNKNOWN IMPORTED)
  set_target_properties(cuDNN::cuDNN PROPERTIES
    IMPORTED_LOCATION ${cuDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${cuDNN_INCLUDE_DIR})
endif()
