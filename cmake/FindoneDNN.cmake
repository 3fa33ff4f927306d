# oneDNN, version 2.6 or newer: target oneDNN::oneDNN. The package file of oneDNN itself needs OpenCL's headers, which
# tern does not use.
find_library(oneDNN_LIBRARY dnnl)
find_path(oneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
mark_as_advanced(oneDNN_LIBRARY oneDNN_INCLUDE_DIR)

if(oneDNN_INCLUDE_DIR)
  file(STRINGS ${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h version_lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
  string(REGEX REPLACE "[^0-9]+" "." oneDNN_VERSION "${version_lines}")
  string(REGEX REPLACE "^\\.|\\.$" "" oneDNN_VERSION "${oneDNN_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR VERSION_VAR oneDNN_VERSION
  REASON_FAILURE_MESSAGE "On Debian and Ubuntu: libdnnl-dev.")

if(oneDNN_FOUND AND NOT TARGET oneDNN::oneDNN)
  add_library(oneDNN::oneDNN UNKNOWN IMPORTED)
  set_target_properties(oneDNN::oneDNN PROPERTIES
    IMPORTED_LOCATION ${oneDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${oneDNN_INCLUDE_DIR})
endif()
