# SPDX-License-Identifier: Apache-2.0
#
# Tests: every tests/<folder>/test_*.c is one cmocka program and one ctest case "<folder>.<name>".
# Other .c files of the folder and those of tests/support are linked into each of its programs. A
# line "Labels: threads" near the top of a test gives it ctest labels; with the label "serial" no
# other test runs at the same time. The label long keeps a test out of the slower builds
# (sanitizers, limited instruction sets), and nightly keeps it out of the commit list (dev/check).
# must_fail_*.c has to fail, which proves that failures are detected. Exit code 77 means skipped (no
# data, no such hardware). The target tests_label_<label> builds the programs with one label.
catena_find(CMOCKA cmocka.h cmocka cmocka)
if(NOT CATENA_CMOCKA_FOUND)
    message(FATAL_ERROR "CATENA_TESTS is ${CATENA_TESTS} but cmocka was not found: install it, or "
        "use -DCATENA_TESTS=OFF")
endif()

# An archive of the objects, because only a static link can reach internal (hidden) names.
add_library(catena_internal STATIC $<TARGET_OBJECTS:catena_objects>)
set_target_properties(catena_internal PROPERTIES LINKER_LANGUAGE C)
target_include_directories(catena_internal INTERFACE
    include src tests "${PROJECT_BINARY_DIR}/generated")
target_compile_definitions(catena_internal INTERFACE ${catena_definitions}
    $<$<CONFIG:Debug>:CTN_DEBUG=1>)
target_link_libraries(catena_internal INTERFACE catena_deps)

# OpenMP threads sleep while they wait. If other processes use the same cores, spinning makes tests
# with many small plans up to twenty times slower. No test uses the tuning results of another.
set(test_environment OMP_WAIT_POLICY=passive CATENA_CACHE_DIR=none)
# Under an emulator, timing kernels takes minutes and tells nothing.
if(CMAKE_CROSSCOMPILING)
    list(APPEND test_environment CATENA_TUNE=0)
endif()

# Seconds after which a test counts as hung. On two cores of 2.5 GHz, tests took up to 92 CPU
# seconds (unit.dist_exchange, tsan), and golden.cifar, a nightly test, 211 (dev).
# An earlier limit of 600 s was exceeded when other work shared the cores.
set(test_timeout 900)
set(long_timeout 1800)

function(add_catena_test folder source library)
    get_filename_component(name ${source} NAME_WE)
    set(target ${folder}_${name})
    add_executable(${target} ${source} ${ARGN})
    set_target_properties(${target} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/${folder}" OUTPUT_NAME ${name})
    # The folder of the golden files. Tests write only into their own working directory. Only the
    # tests that read it get its path, so that ccache serves the others in checkouts elsewhere.
    file(STRINGS ${source} line REGEX CTN_TESTS_DIR LIMIT_COUNT 1)
    if(line)
        target_compile_definitions(${target} PRIVATE CTN_TESTS_DIR="${PROJECT_SOURCE_DIR}/tests")
    endif()
    target_link_libraries(${target} PRIVATE ${library} catena_CMOCKA catena_warnings
        OpenMP::OpenMP_C Threads::Threads m)
    set(work "${PROJECT_BINARY_DIR}/tests/${folder}/${name}.work")
    file(MAKE_DIRECTORY "${work}")

    string(REGEX REPLACE "^test_" "" short ${name})
    add_test(NAME ${folder}.${short} COMMAND ${target} WORKING_DIRECTORY "${work}")
    file(STRINGS ${source} line REGEX "Labels: " LIMIT_COUNT 1 LIMIT_INPUT 2000)
    string(REGEX REPLACE ".*Labels: *([a-z0-9 ]+).*" "\\1" labels "${line}")
    separate_arguments(labels)
    set_tests_properties(${folder}.${short} PROPERTIES
        LABELS "${folder};${labels}" TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77
        ENVIRONMENT "${test_environment}")
    if("long" IN_LIST labels OR "nightly" IN_LIST labels)
        set_tests_properties(${folder}.${short} PROPERTIES TIMEOUT ${long_timeout})
    endif()
    foreach(label IN LISTS labels)
        if(NOT TARGET tests_label_${label})
            add_custom_target(tests_label_${label})
        endif()
        add_dependencies(tests_label_${label} ${target})
    endforeach()
    if("serial" IN_LIST labels)
        set_tests_properties(${folder}.${short} PROPERTIES RUN_SERIAL TRUE)
    endif()
    if(name MATCHES "^must_fail_")
        set_tests_properties(${folder}.${short} PROPERTIES WILL_FAIL TRUE)
    endif()
endfunction()

function(add_test_folder folder library)
    set(dir "${PROJECT_SOURCE_DIR}/tests/${folder}")
    set(programs test_*.c must_fail_*.c)
    if(folder STREQUAL "api" AND CMAKE_CXX_COMPILER)
        list(APPEND programs test_*.cpp)
    endif()
    list(TRANSFORM programs PREPEND "${dir}/")
    file(GLOB tests CONFIGURE_DEPENDS ${programs})
    file(GLOB helpers CONFIGURE_DEPENDS "${dir}/*.c")
    if(NOT tests)
        return()
    endif()
    list(REMOVE_ITEM helpers ${tests})
    if(helpers)
        add_library(tests_${folder} OBJECT ${helpers})
        target_link_libraries(tests_${folder} PRIVATE ${library} catena_CMOCKA catena_warnings
            OpenMP::OpenMP_C)
        set(helpers $<TARGET_OBJECTS:tests_${folder}>)
    endif()
    foreach(source IN LISTS tests)
        add_catena_test(${folder} ${source} ${library} ${helpers})
    endforeach()
    list(LENGTH tests count)
    math(EXPR count "${catena_test_count} + ${count}")
    set(catena_test_count ${count} PARENT_SCOPE)
endfunction()

file(GLOB support CONFIGURE_DEPENDS tests/support/*.c)
if(support)
    add_library(tests_support STATIC ${support})
    target_link_libraries(tests_support PUBLIC catena_internal catena_CMOCKA
        PRIVATE catena_warnings)
    set(internal tests_support)
else()
    set(internal catena_internal)
endif()
foreach(folder unit ops random pairs golden oom onnx)
    add_test_folder(${folder} ${internal})
endforeach()
add_test_folder(api catena)

# All pairs of features; pairs.pairs tries some.
add_test(NAME pairs.all COMMAND pairs_test_pairs all)
set_tests_properties(pairs.all PROPERTIES LABELS "pairs;nightly" TIMEOUT ${long_timeout}
    SKIP_RETURN_CODE 77 ENVIRONMENT "${test_environment}")
math(EXPR catena_test_count "${catena_test_count} + 1")

# Under an emulator ops.ops takes hours, so some ops are also tested by themselves.
if(CMAKE_CROSSCOMPILING)
    foreach(op batch_norm conv exp gelu layer_norm linear matmul max_pool sum)
        add_test(NAME ops.${op} COMMAND ops_test_ops ${op})
        set_tests_properties(ops.${op} PROPERTIES LABELS ops TIMEOUT ${test_timeout}
            ENVIRONMENT "${test_environment}")
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endforeach()
endif()

# Hostile operands, where a sanitizer sees what they do.
if(CATENA_SANITIZE MATCHES "address")
    add_test(NAME ops.hostile COMMAND ops_test_ops --hostile)
    set_tests_properties(ops.hostile PROPERTIES LABELS ops TIMEOUT ${test_timeout}
        ENVIRONMENT "${test_environment}")
    math(EXPR catena_test_count "${catena_test_count} + 1")
endif()

# The C++ interface: every tests/cpp/test_*.cpp is one program without cmocka, in strict C++17.
if(CMAKE_CXX_COMPILER)
    file(GLOB programs CONFIGURE_DEPENDS tests/cpp/test_*.cpp)
    foreach(source IN LISTS programs)
        get_filename_component(name ${source} NAME_WE)
        string(REGEX REPLACE "^test_" "" short ${name})
        add_executable(cpp_${name} ${source})
        set_target_properties(cpp_${name} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/cpp" OUTPUT_NAME ${name})
        target_link_libraries(cpp_${name} PRIVATE catena catena_warnings)
        add_test(NAME cpp.${short} COMMAND cpp_${name})
        set_tests_properties(cpp.${short} PROPERTIES LABELS cpp TIMEOUT ${test_timeout}
            ENVIRONMENT "${test_environment}")
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endforeach()
    find_program(CATENA_CLANGXX NAMES clang++ clang++-19)
    mark_as_advanced(CATENA_CLANGXX)
    if(CATENA_CLANGXX)
        add_test(NAME cpp.clang COMMAND ${CATENA_CLANGXX} -std=c++17 -Wall -Wextra -Wshadow -Werror
            -pedantic -fsyntax-only -I${PROJECT_SOURCE_DIR}/include ${programs})
        set_tests_properties(cpp.clang PROPERTIES LABELS cpp TIMEOUT ${test_timeout})
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endif()
endif()

# Fuzz targets: each runs once over its corpora, the one by hand and the one that fuzzing produced,
# and over a few hundred changed files of them; or, with CATENA_FUZZER and clang, under libFuzzer
# (dev/fuzz).
set(grown "${PROJECT_BINARY_DIR}/tests/fuzz/grown")
file(ARCHIVE_EXTRACT INPUT "${PROJECT_SOURCE_DIR}/tests/fuzz/grown.tar.gz" DESTINATION "${grown}")
file(GLOB targets CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source IN LISTS targets)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" short ${name})
    add_executable(${name} ${source} tests/fuzz/support.c tests/fuzz/changes.c
        tests/fuzz/changes_onnx.c)
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/fuzz")
    target_link_libraries(${name} PRIVATE catena_internal catena_warnings)
    if(CATENA_FUZZER)
        target_sources(${name} PRIVATE tests/fuzz/mutator.c)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    else()
        target_sources(${name} PRIVATE tests/fuzz/run.c tests/fuzz/cases.c)
        set(corpora "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${short}")
        if(EXISTS "${grown}/${short}")
            list(APPEND corpora "${grown}/${short}")
        endif()
        add_test(NAME fuzz.${short} COMMAND ${name} ${corpora})
        add_test(NAME hostile.${short} COMMAND ${name} --cases 400 ${corpora})
        set_tests_properties(fuzz.${short} hostile.${short} PROPERTIES LABELS fuzz
            TIMEOUT ${test_timeout} ENVIRONMENT CATENA_PLUGIN_DIR=${PROJECT_BINARY_DIR})
        math(EXPR catena_test_count "${catena_test_count} + 2")
    endif()
endforeach()

# Unit tests of parts of the command: the test, then the files of tools/catena that it needs.
foreach(test "cores;cores_plan" "verdict;start/verdict"
        "watchdog;watchdog/watchdog;watchdog/hub;watchdog/join;watchdog/net;start/verdict")
    list(POP_FRONT test name)
    if(TARGET unit_test_${name})
        list(TRANSFORM test REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/tools/catena/\\1.c")
        target_sources(unit_test_${name} PRIVATE ${test})
        target_include_directories(unit_test_${name} PRIVATE tools/catena)
    endif()
endforeach()

# Targets for files that the command reads, and the files of tools/catena that they need.
set(watchdog "watchdog/hub;watchdog/join;watchdog/net")
foreach(target
        "yaml;config;options;help;report;files;memory;start/verdict;watchdog/watchdog;${watchdog}"
        "timeline;timeline/read" "step;scale/events;scale/estimate;scale/fitted")
    list(POP_FRONT target name)
    if(TARGET fuzz_${name})
        list(TRANSFORM target REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/tools/catena/\\1.c")
        target_sources(fuzz_${name} PRIVATE ${target})
        target_include_directories(fuzz_${name} PRIVATE tools/catena)
    endif()
endforeach()
if(CATENA_YAML_FOUND AND TARGET fuzz_yaml)
    target_link_libraries(fuzz_yaml PRIVATE catena_YAML)
    target_compile_definitions(fuzz_yaml PRIVATE CTN_HAVE_YAML=1)
endif()
if(TARGET hdf5_plugin AND TARGET fuzz_hdf5)
    add_dependencies(fuzz_hdf5 hdf5_plugin)
    add_dependencies(fuzz_netcdf hdf5_plugin)
endif()

# The allocation counter for LD_PRELOAD, and its own test. Sanitizers bring their own malloc.
if(NOT CATENA_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    set(dir "${PROJECT_BINARY_DIR}/tests/preload")
    add_library(preload_count MODULE tests/preload/count.c)
    add_library(preload_stand_in SHARED tests/preload/stand_in.c)
    add_executable(preload_test tests/preload/test_count.c)
    # gcc may drop or merge calls to malloc, which this library counts.
    foreach(target preload_count preload_stand_in preload_test)
        target_compile_options(${target} PRIVATE -fno-builtin)
        target_link_libraries(${target} PRIVATE catena_warnings ${CMAKE_DL_LIBS})
        set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${dir}"
            RUNTIME_OUTPUT_DIRECTORY "${dir}")
    endforeach()
    # The stand-in has the file name of the library, because the counter attributes calls by file
    # name.
    set_target_properties(preload_stand_in PROPERTIES OUTPUT_NAME catena
        LIBRARY_OUTPUT_DIRECTORY "${dir}/stand_in")
    target_link_libraries(preload_test PRIVATE preload_stand_in)
    add_test(NAME preload.count COMMAND preload_test)
    set_tests_properties(preload.count PROPERTIES LABELS preload
        ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:preload_count>")
    math(EXPR catena_test_count "${catena_test_count} + 1")
endif()

# Batches of unequal length need few plans: at most 32 shapes occur.
if(TARGET examples_sequence_sequence)
    add_test(NAME examples.sequence COMMAND "${PROJECT_SOURCE_DIR}/tests/support/prints.sh"
        "epoch 3  loss 0[.][0-9]+  plans ([12][0-9]|3[0-2])$" ${CMAKE_CROSSCOMPILING_EMULATOR}
        $<TARGET_FILE:examples_sequence_sequence>)
    set_tests_properties(examples.sequence PROPERTIES LABELS examples TIMEOUT ${test_timeout}
        ENVIRONMENT "${test_environment}")
    math(EXPR catena_test_count "${catena_test_count} + 1")
endif()

# Physics-informed networks: gradients of second and third order inside the loss.
if(TARGET examples_physics_burgers AND NOT CATENA_SANITIZE)
    foreach(name burgers navier_stokes)
        add_test(NAME examples.${name} COMMAND "${PROJECT_SOURCE_DIR}/tests/support/prints.sh"
            "step +120  loss 0[.][01]" ${CMAKE_CROSSCOMPILING_EMULATOR}
            $<TARGET_FILE:examples_physics_${name}> 120)
        set_tests_properties(examples.${name} PROPERTIES LABELS examples TIMEOUT ${test_timeout}
            ENVIRONMENT "${test_environment}")
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endforeach()
endif()

# Trains the example twice: takes minutes in an optimised build, hours in the others.
if(TARGET examples_mnist_mnist AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo)$"
        AND NOT CATENA_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    add_test(NAME golden.mnist COMMAND "${PROJECT_SOURCE_DIR}/tests/golden/mnist.sh"
        $<TARGET_FILE:examples_mnist_mnist>)
    set_tests_properties(golden.mnist PROPERTIES LABELS "golden;nightly;serial" RUN_SERIAL TRUE
        TIMEOUT ${long_timeout} SKIP_RETURN_CODE 77 ENVIRONMENT "${test_environment}")
    math(EXPR catena_test_count "${catena_test_count} + 1")
endif()

find_package(Python3 COMPONENTS Interpreter QUIET)
# The scripts start programs, which a cross build's machine cannot run by itself.
if(CMAKE_CROSSCOMPILING)
    set(Python3_Interpreter_FOUND FALSE)
endif()

# The description of the public interface against compilers, and calls from Fortran.
if(Python3_Interpreter_FOUND AND CATENA_YYJSON_FOUND AND NOT CATENA_SANITIZE)
    find_program(CATENA_FC NAMES gfortran)
    mark_as_advanced(CATENA_FC)
    set(fortran ${CATENA_FC})
    if(NOT fortran)
        set(fortran)
    endif()
    add_test(NAME bindings.interface
        COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/bindings/test_interface.py"
        $<TARGET_FILE_DIR:catena> ${CMAKE_C_COMPILER} ${fortran})
    add_test(NAME bindings.fortran
        COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/fortran/run.py"
        $<TARGET_FILE_DIR:catena> ${CMAKE_C_COMPILER} ${fortran})
    set_tests_properties(bindings.interface bindings.fortran PROPERTIES LABELS bindings
        TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77 ENVIRONMENT "${test_environment}")
    math(EXPR catena_test_count "${catena_test_count} + 2")
endif()

if(TARGET catena_python)
    file(GLOB python_tests CONFIGURE_DEPENDS tests/python/test_*.py)
    set(python_environment ${test_environment} CATENA_BUILD=${PROJECT_BINARY_DIR}
        PYTHONPATH=${PROJECT_BINARY_DIR}/python)
    if(CATENA_SANITIZE)
        # Python itself has no sanitizer, so the library of the sanitizer is loaded before it. Its
        # own objects live until the end, and small ones must come from malloc to be checked.
        execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so
            OUTPUT_VARIABLE python_asan OUTPUT_STRIP_TRAILING_WHITESPACE)
        list(APPEND python_environment LD_PRELOAD=${python_asan} PYTHONMALLOC=malloc
            ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1)
        list(FILTER python_tests EXCLUDE REGEX "test_(dist|insitu)\\.py") # no mpirun here
    endif()
    foreach(file ${python_tests})
        get_filename_component(name ${file} NAME_WE)
        string(REPLACE "test_" "" name ${name})
        add_test(NAME python.${name} COMMAND Python3::Interpreter ${file})
        set_tests_properties(python.${name} PROPERTIES LABELS python TIMEOUT ${test_timeout}
            SKIP_RETURN_CODE 77
            ENVIRONMENT "${python_environment}")
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endforeach()
endif()

# The examples in C and C++ compute the same bits, which they save as safetensors.
if(TARGET examples_xor_xor_cpp AND Python3_Interpreter_FOUND AND CATENA_YYJSON_FOUND)
    add_test(NAME cpp.same_bits
        COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/cpp/same_bits.py"
        $<TARGET_FILE:examples_xor_xor> $<TARGET_FILE:examples_xor_xor_cpp>
        $<TARGET_FILE:examples_mnist_mnist> $<TARGET_FILE:examples_mnist_mnist_cpp>)
    set_tests_properties(cpp.same_bits PROPERTIES LABELS cpp TIMEOUT ${test_timeout}
        ENVIRONMENT "${test_environment}")
    math(EXPR catena_test_count "${catena_test_count} + 1")
endif()

# The first example is the same program in four languages.
if(TARGET examples_xor_xor_cpp AND Python3_Interpreter_FOUND AND CATENA_YYJSON_FOUND
        AND NOT CATENA_SANITIZE)
    set(others ${fortran})
    if(TARGET catena_python)
        list(PREPEND others python)
    endif()
    add_test(NAME bindings.xor
        COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/bindings/test_xor.py"
        $<TARGET_FILE_DIR:catena> $<TARGET_FILE:examples_xor_xor>
        $<TARGET_FILE:examples_xor_xor_cpp> ${others})
    set_tests_properties(bindings.xor PROPERTIES LABELS bindings TIMEOUT ${test_timeout}
        ENVIRONMENT "${test_environment};PYTHONPATH=${PROJECT_BINARY_DIR}/python")
    math(EXPR catena_test_count "${catena_test_count} + 1")
endif()

# Tests the command from outside: usage, configuration, small complete trainings, resume.
if(TARGET catena_command AND Python3_Interpreter_FOUND AND NOT CATENA_SANITIZE MATCHES "thread")
    foreach(part 1 2 3 4) # at the same time
        add_test(NAME cli.command${part}
            COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/cli/test_cli.py"
            $<TARGET_FILE:catena_command> "${PROJECT_SOURCE_DIR}" $<TARGET_FILE_DIR:catena>
            ${part}/4)
        set_tests_properties(cli.command${part} PROPERTIES
            LABELS cli TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77)
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endforeach()
    if(TARGET catena_man)
        add_test(NAME cli.completion
            COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/cli/test_completion.py"
            "${PROJECT_BINARY_DIR}/share")
        set_tests_properties(cli.completion PROPERTIES
            LABELS cli TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77)
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endif()
    add_test(NAME cli.kills COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/cli/kills.py"
        $<TARGET_FILE:catena_command> --kills 6 --terms 3)
    set_tests_properties(cli.kills PROPERTIES
        LABELS "cli;nightly" TIMEOUT ${long_timeout} SKIP_RETURN_CODE 77)
    if(NOT CATENA_SANITIZE) # strace and mpirun do not work with sanitizers
        add_test(NAME cli.launch
            COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/cli/test_launch.py"
            $<TARGET_FILE:catena_command>)
        set_tests_properties(cli.launch PROPERTIES
            LABELS "cli;mpi" TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
        add_test(NAME cli.restart
            COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/cli/test_restart.py"
            $<TARGET_FILE:catena_command>)
        set_tests_properties(cli.restart PROPERTIES
            LABELS "cli;mpi" TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
    endif()
    math(EXPR catena_test_count "${catena_test_count} + 3")
endif()

# The longest begin first, so that at the end no core waits for them.
foreach(name ops.ops ops.hostile golden.resnet golden.steps unit.zoo unit.recompute unit.bnorm
    unit.image)
    if(TEST ${name})
        set_tests_properties(${name} PROPERTIES COST 100)
    endif()
endforeach()
