# tests/consume built and run as a project of its own, both ways that tern reaches one.
set(consume ${PROJECT_BINARY_DIR}/consume)

add_test(NAME consume/install COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${consume}/prefix)
function(tern_consume_test way)
  add_test(NAME consume/${way} COMMAND ${CMAKE_CTEST_COMMAND}
    --build-and-test ${PROJECT_SOURCE_DIR}/tests/consume ${consume}/${way}
    --build-generator ${CMAKE_GENERATOR} --build-target consume
    --build-options -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
      -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER} -DTERN_CPU=${TERN_CPU} ${ARGN}
    --test-command ${CMAKE_CTEST_COMMAND} --output-on-failure)
endfunction()
tern_consume_test(find_package -DCMAKE_PREFIX_PATH=${consume}/prefix)
# All of tern is compiled once more here: at -O1 in two thirds of the time.
tern_consume_test(add_subdirectory -DTERN_SOURCE=${PROJECT_SOURCE_DIR} -DCMAKE_CXX_FLAGS_RELEASE=-O1)

set_tests_properties(consume/install PROPERTIES FIXTURES_SETUP tern_prefix LABELS slow)
set_tests_properties(consume/find_package PROPERTIES FIXTURES_REQUIRED tern_prefix LABELS slow)
set_tests_properties(consume/add_subdirectory PROPERTIES LABELS slow)
