# tests/consume built and run as a project of its own, both ways that tern reaches one.
set(consume ${PROJECT_BINARY_DIR}/consume)

add_test(NAME consume/install COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${consume}/prefix)
# tern_consume_test(WAY TARGET TESTS FLAGS...): builds TARGET and runs the tests that the regular expression TESTS names.
function(tern_consume_test way target tests)
  add_test(NAME consume/${way} COMMAND ${CMAKE_CTEST_COMMAND}
    --build-and-test ${PROJECT_SOURCE_DIR}/tests/consume ${consume}/${way}
    --build-generator ${CMAKE_GENERATOR} --build-target ${target}
    --build-options -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
      -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER} ${ARGN}
    --test-command ${CMAKE_CTEST_COMMAND} --output-on-failure -R ${tests})
endfunction()
tern_consume_test(find_package consume . -DCMAKE_PREFIX_PATH=${consume}/prefix)
# tern is compiled once more here, quickly: reference kernels alone, and not optimised.
tern_consume_test(add_subdirectory gain ^gain$ -DTERN_SOURCE=${PROJECT_SOURCE_DIR} -DTERN_CPU=OFF
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_CXX_FLAGS_RELEASE=-O0)

set_tests_properties(consume/install PROPERTIES FIXTURES_SETUP tern_prefix LABELS slow)
set_tests_properties(consume/find_package PROPERTIES FIXTURES_REQUIRED tern_prefix LABELS slow)
set_tests_properties(consume/add_subdirectory PROPERTIES LABELS slow)
