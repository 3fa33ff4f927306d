# NCCL, version 2.14 or newer. Sets NCCL_INCLUDE_DIR, and NCCL_LIBRARY if the library is found. Nothing links it:
# programs load it when they need it. Wheels contain libnccl.so.2 without the plain name.
include(${CMAKE_CURRENT_LIST_DIR}/NvidiaFolders.cmake)
tern_nvidia_folders(headers libraries)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${headers})
find_library(NCCL_LIBRARY NAMES libnccl.so.2 nccl HINTS ${libraries})
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h version_lines REGEX "define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "[^0-9]+" "." NCCL_VERSION "${version_lines}")
  string(REGEX REPLACE "^\\.|\\.$" "" NCCL_VERSION "${NCCL_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION
  REASON_FAILURE_MESSAGE "It is libnccl-dev in NVIDIA's repository, and in pip's nvidia-nccl-cu13.")
