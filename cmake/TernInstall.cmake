# The package `tern`. find_package(tern) gives tern::tern, and every folder of the library as tern::FOLDER.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tern)

install(TARGETS tern EXPORT tern)
install(EXPORT tern NAMESPACE tern:: FILE ternTargets.cmake DESTINATION ${package_folder})
install(FILES ${PROJECT_SOURCE_DIR}/tern.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tern)
set(page_folder ${CMAKE_INSTALL_DATAROOTDIR}/doc/tern)
install(FILES README.md LICENSE CHANGELOG.md CONTRIBUTING.md DESTINATION ${page_folder})
install(DIRECTORY docs DESTINATION ${page_folder} FILES_MATCHING PATTERN *.md)

get_property(tern_dependencies GLOBAL PROPERTY TERN_DEPENDENCIES)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ternConfig.cmake.in ${PROJECT_BINARY_DIR}/ternConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ternConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/ternConfig.cmake
  ${PROJECT_BINARY_DIR}/ternConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindcuBLASLt.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindcuDNN.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindoneDNN.cmake
  ${PROJECT_SOURCE_DIR}/cmake/NvidiaFolders.cmake
  DESTINATION ${package_folder})
