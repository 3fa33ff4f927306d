# Builds and runs examples/ as a project of its own, with both ways to use tern.
set(examples ${PROJECT_BINARY_DIR}/examples)

add_test(NAME examples/empty_prefix COMMAND ${CMAKE_COMMAND} -E rm -rf ${examples}/prefix)
add_test(NAME examples/install COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${examples}/prefix)
# tern_examples_test(WAY TARGET TESTS FLAGS...): builds TARGET and runs the tests whose names match the regular
# expression TESTS.
function(tern_examples_test way target tests)
  add_test(NAME examples/${way} COMMAND ${CMAKE_CTEST_COMMAND}
    --build-and-test ${PROJECT_SOURCE_DIR}/examples ${examples}/${way}
    --build-generator ${CMAKE_GENERATOR} --build-target ${target}
    --build-options -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
      -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER} ${ARGN}
    --test-command ${CMAKE_CTEST_COMMAND} --output-on-failure -j 2 -R ${tests})
endfunction()
# Without optimisation, the examples compile in half of the time. The library that they link has it.
tern_examples_test(find_package examples . -DCMAKE_PREFIX_PATH=${examples}/prefix -DCMAKE_CXX_FLAGS_RELEASE=-O0)
# This test compiles tern again. To be quick, it compiles only the layers and what is below them, with the reference
# kernels, and without optimisation.
tern_examples_test(add_subdirectory own_layer ^own_layer$ -DTERN_SOURCE=${PROJECT_SOURCE_DIR} -DTERN_CPU=OFF
  -DTERN_LIBRARY=tern::layers
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 -DCMAKE_CXX_FLAGS_RELEASE=-O0)

# The installed programs and pages.
if(TERN_APPS)
  add_test(NAME examples/programs COMMAND ${examples}/prefix/${CMAKE_INSTALL_BINDIR}/train_lenet --version)
  set_tests_properties(examples/programs PROPERTIES FIXTURES_REQUIRED tern_prefix LABELS slow
    PASS_REGULAR_EXPRESSION "train_lenet: tern ${PROJECT_VERSION}")
endif()
set(pages ${examples}/prefix/${CMAKE_INSTALL_DATAROOTDIR}/doc/tern)
add_test(NAME examples/pages COMMAND ${CMAKE_COMMAND} -E cat ${pages}/README.md ${pages}/LICENSE ${pages}/docs/models.md)
set_tests_properties(examples/pages PROPERTIES FIXTURES_REQUIRED tern_prefix LABELS slow)

set_tests_properties(examples/empty_prefix PROPERTIES FIXTURES_SETUP tern_empty_prefix LABELS slow)
set_tests_properties(examples/install PROPERTIES FIXTURES_SETUP tern_prefix FIXTURES_REQUIRED tern_empty_prefix
  LABELS slow)
set_tests_properties(examples/find_package PROPERTIES FIXTURES_REQUIRED tern_prefix LABELS slow)
set_tests_properties(examples/add_subdirectory PROPERTIES LABELS slow)
