# The OpenMP build of OpenBLAS: target OpenBLAS::OpenMP. It shares one thread pool with oneDNN and tern. Debian has a
# folder for each build, but all builds have the same soname. The run path decides which one is loaded.
find_library(OpenBLASOpenMP_LIBRARY openblas NO_DEFAULT_PATH
  PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp)
find_path(OpenBLASOpenMP_INCLUDE_DIR cblas.h NO_DEFAULT_PATH
  PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp)
mark_as_advanced(OpenBLASOpenMP_LIBRARY OpenBLASOpenMP_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLASOpenMP REQUIRED_VARS OpenBLASOpenMP_LIBRARY OpenBLASOpenMP_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "On Debian and Ubuntu: libopenblas-openmp-dev.")

if(OpenBLASOpenMP_FOUND AND NOT TARGET OpenBLAS::OpenMP)
  get_filename_component(folder ${OpenBLASOpenMP_LIBRARY} DIRECTORY)
  add_library(OpenBLAS::OpenMP UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenMP PROPERTIES
    IMPORTED_LOCATION ${OpenBLASOpenMP_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${OpenBLASOpenMP_INCLUDE_DIR}
    INTERFACE_LINK_OPTIONS LINKER:-rpath,${folder})
endif()
