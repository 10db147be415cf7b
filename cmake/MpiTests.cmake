# SPDX-License-Identifier: Apache-2.0
#
# Runs tests/mpi under mpirun on this machine as "mpi.<kind>.<program>.<ranks>". The programs
# world, train and parts work with every MPI; guest, net, serial and solver are compiled with each.
# If an MPI or its launcher is missing, one skipped test reports it. There are no MPI tests with
# sanitizers, which would report errors in MPI itself; the same algorithms run there on threads
# (unit.comm).
if(CATENA_SANITIZE OR NOT CATENA_MPI)
    return()
endif()

set(dir "${PROJECT_BINARY_DIR}/tests/mpi")
list(APPEND test_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
add_library(mpi_cases OBJECT tests/mpi/cases.c)
target_link_libraries(mpi_cases PRIVATE catena catena_warnings)

function(add_mpi_program target name)
    add_executable(${target} tests/mpi/test_${name}.c $<TARGET_OBJECTS:mpi_cases>)
    set_target_properties(${target} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${dir}" OUTPUT_NAME ${target})
    target_link_libraries(${target} PRIVATE catena catena_warnings m ${CMAKE_DL_LIBS})
endfunction()
add_mpi_program(mpi_world world)
add_mpi_program(mpi_train train)
add_mpi_program(mpi_parts parts)

foreach(kind openmpi mpich)
    string(TOUPPER ${kind} id)
    if(NOT CATENA_${id}_FOUND OR NOT CATENA_${id}_RUN)
        add_test(NAME mpi.${kind}.missing
            COMMAND sh -c "echo ${kind} or its mpirun was not found; exit 77")
        set_tests_properties(mpi.${kind}.missing PROPERTIES LABELS mpi SKIP_RETURN_CODE 77)
        math(EXPR catena_test_count "${catena_test_count} + 1")
        continue()
    endif()
    foreach(name guest net serial solver)
        add_mpi_program(mpi_${name}_${kind} ${name})
        use_mpi(mpi_${name}_${kind} ${kind})
    endforeach()
    set_target_properties(mpi_serial_${kind} PROPERTIES ENABLE_EXPORTS TRUE) # wraps MPI's functions
    target_include_directories(mpi_net_${kind} PRIVATE src)
    # Simulates a large machine: messages that must be split, and nodes of two ranks.
    add_mpi_plugin(mpi_small_${kind} ${kind} "${dir}/small"
        CTN__MPI_MOST=1000 CTN__MPI_NODE_RANKS=2)

    set(launch ${CATENA_${id}_RUN})
    if(kind STREQUAL "openmpi")
        list(APPEND launch --oversubscribe --bind-to none)
    endif()
    # The solver that trains while it runs, compiled as users would compile it: in C and, if there
    # is a compiler, in Fortran.
    get_filename_component(bin "${CATENA_${id}_CC}" DIRECTORY)
    find_program(CATENA_${id}_FC NAMES mpifort.${kind} mpifort HINTS ${bin})
    mark_as_advanced(CATENA_${id}_FC)
    set(fortran ${CATENA_${id}_FC})
    if(NOT fortran)
        set(fortran)
    endif()
    add_test(NAME mpi.${kind}.insitu
        COMMAND "${PROJECT_SOURCE_DIR}/tests/mpi/test_insitu.sh"
            $<TARGET_FILE_DIR:catena> ${launch})
    set_tests_properties(mpi.${kind}.insitu PROPERTIES
        LABELS "mpi;nightly" TIMEOUT ${long_timeout} PROCESSORS 2
        ENVIRONMENT "MPICC=${CATENA_${id}_CC};MPIFC=${fortran}")
    math(EXPR catena_test_count "${catena_test_count} + 1")
    # A solver with its own MPI calls, at every level of thread support; then with a rank that
    # fails, a few times (dev/failing-peers: 200 times).
    foreach(level 1 2 3)
        add_test(NAME mpi.${kind}.solver.${level}
            COMMAND "${PROJECT_SOURCE_DIR}/tests/mpi/test_solver.sh"
                $<TARGET_FILE:mpi_solver_${kind}> ${level} 3 1 ${launch})
        set_tests_properties(mpi.${kind}.solver.${level} PROPERTIES
            LABELS "mpi" TIMEOUT ${test_timeout} PROCESSORS 2
            ENVIRONMENT "${test_environment};OMP_NUM_THREADS=1")
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endforeach()
    add_test(NAME mpi.${kind}.serial
        COMMAND ${launch} -n 2 $<TARGET_FILE:mpi_serial_${kind}>)
    set(environment ${test_environment} OMP_NUM_THREADS=1
        CATENA_MPI=$<TARGET_FILE:mpi_plugin_${kind}>)
    set_tests_properties(mpi.${kind}.serial PROPERTIES
        LABELS "mpi" TIMEOUT ${test_timeout} PROCESSORS 2 ENVIRONMENT "${environment}")
    math(EXPR catena_test_count "${catena_test_count} + 1")
    # Random programs with processes as ranks.
    foreach(ranks 2 3)
        add_test(NAME mpi.${kind}.random.${ranks}
            COMMAND ${launch} -n ${ranks} $<TARGET_FILE:random_test_random_ranks> mpi 60)
        set(environment ${test_environment} OMP_NUM_THREADS=1
            CATENA_MPI=$<TARGET_FILE:mpi_plugin_${kind}>)
        set_tests_properties(mpi.${kind}.random.${ranks} PROPERTIES
            LABELS "mpi" TIMEOUT ${test_timeout} PROCESSORS 2 ENVIRONMENT "${environment}")
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endforeach()
    # Networks in parts: ops from rank to rank, chains, divided fields.
    foreach(ranks 1 2 3 4)
        add_test(NAME mpi.${kind}.parts.${ranks}
            COMMAND ${launch} -n ${ranks} $<TARGET_FILE:mpi_parts> ${ranks})
        set_tests_properties(mpi.${kind}.parts.${ranks} PROPERTIES
            LABELS "mpi" TIMEOUT ${test_timeout} PROCESSORS 2
            ENVIRONMENT "${test_environment};OMP_NUM_THREADS=1")
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endforeach()
    foreach(ranks 2 4)
        set(steps 100)
        # Slow: most test machines have fewer than four cores.
        if(ranks EQUAL 4 OR kind STREQUAL "mpich")
            set(steps 12)
        endif()
        add_test(NAME mpi.${kind}.train.${ranks}
            COMMAND ${launch} -n ${ranks} $<TARGET_FILE:mpi_train> ${steps})
        set_tests_properties(mpi.${kind}.train.${ranks} PROPERTIES
            LABELS "mpi;nightly" TIMEOUT ${long_timeout} PROCESSORS ${ranks}
            ENVIRONMENT "${test_environment};OMP_NUM_THREADS=1")
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endforeach()
    # Seven processes on two cores take minutes, so only one MPI gets that many.
    set(most 7)
    if(kind STREQUAL "mpich")
        set(most 5)
    endif()
    foreach(ranks 1 2 3 4 ${most})
        set(program_world $<TARGET_FILE:mpi_world> ${ranks})
        set(program_guest $<TARGET_FILE:mpi_guest_${kind}>)
        set(program_nodes $<TARGET_FILE:mpi_guest_${kind}> 65537)
        set(program_net $<TARGET_FILE:mpi_net_${kind}> $<TARGET_FILE:mpi_plugin_${kind}> 0)
        set(program_cut $<TARGET_FILE:mpi_net_${kind}> $<TARGET_FILE:mpi_small_${kind}> 2)
        foreach(name world guest nodes net cut)
            set(test mpi.${kind}.${name}.${ranks})
            set(environment ${test_environment})
            if(name STREQUAL "nodes") # all algorithms over several nodes
                list(APPEND environment "CATENA_MPI=$<TARGET_FILE:mpi_small_${kind}>")
            endif()
            add_test(NAME ${test} COMMAND ${launch} -n ${ranks} ${program_${name}})
            set(labels mpi)
            set(timeout ${test_timeout})
            if(ranks MATCHES "[2457]" AND name MATCHES "world|guest|nodes") # half a minute each
                list(APPEND labels nightly)
                set(timeout ${long_timeout})
            endif()
            set_tests_properties(${test} PROPERTIES
                LABELS "${labels}" TIMEOUT ${timeout} PROCESSORS ${ranks}
                ENVIRONMENT "${environment}")
            math(EXPR catena_test_count "${catena_test_count} + 1")
        endforeach()
    endforeach()
endforeach()

# Jobs on several hosts: network namespaces with limited links, real launchers, real failures.
# Skipped if the hosts cannot be created (no root).
if(TARGET catena_command AND CATENA_OPENMPI_RUN)
    # test_restart.sh and test_survive.sh take long and depend on how soon the system notices a lost
    # host: they are run by hand.
    foreach(name cluster launch failures requeue)
        add_test(NAME cluster.${name} COMMAND "${PROJECT_SOURCE_DIR}/tests/cluster/test_${name}.sh"
            $<TARGET_FILE:catena_command>)
        set_tests_properties(cluster.${name} PROPERTIES
            LABELS "mpi;nightly;serial" RUN_SERIAL TRUE TIMEOUT ${long_timeout} SKIP_RETURN_CODE 77)
        math(EXPR catena_test_count "${catena_test_count} + 1")
    endforeach()
endif()
