# SPDX-License-Identifier: Apache-2.0
# The program that `catena scale` runs in SimGrid's simulator: bench/scale with the unchanged
# sources of the layers up to comm, built by SimGrid's own compiler wrapper.

find_program(CATENA_SMPICC smpicc)
mark_as_advanced(CATENA_SMPICC)
if(CATENA_SMPICC AND NOT EXISTS "${CATENA_SMPICC}")
    message(FATAL_ERROR "CATENA_SMPICC is ${CATENA_SMPICC}, expected the path of smpicc, or OFF")
endif()
set(CATENA_SMPICC_FOUND "${CATENA_SMPICC}")
catena_feature(SMPICC SimGrid libsimgrid-dev "no `catena scale`")
if(CATENA_SMPICC)
    file(GLOB simulate_sources CONFIGURE_DEPENDS src/base/*.c src/tensor/*.c src/trace/*.c
        src/comm/*.c bench/scale/*.c tools/catena/scale/events.c)
    file(GLOB simulate_headers CONFIGURE_DEPENDS include/catena/*.h src/base/*.h src/tensor/*.h
        src/trace/*.h src/comm/*.h bench/scale/*.h tools/catena/scale/events.h)
    set(simulate "${PROJECT_BINARY_DIR}/libexec/catena-simulate")
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/libexec")
    # smpicc replaces sleeps and clocks by simulated ones; memory is the ordinary one.
    add_custom_command(OUTPUT "${simulate}"
        COMMAND "${CATENA_SMPICC}" -O2 -g -std=gnu11 -ffp-contract=off -DNDEBUG
            -DSMPI_NO_OVERRIDE_MALLOC ${catena_hardening} -I "${PROJECT_SOURCE_DIR}/include"
            -I "${PROJECT_SOURCE_DIR}/src" -I "${PROJECT_BINARY_DIR}/generated"
            -I "${PROJECT_SOURCE_DIR}/bench/scale" -I "${PROJECT_SOURCE_DIR}/tools/catena"
            -o "${simulate}" ${simulate_sources} -Wl,--wrap=smpi_nanosleep
            -Wl,--wrap=ctn__sum_into,--wrap=ctn__to_wire,--wrap=ctn__from_wire
            -Wl,--wrap=ctn__aligned,--wrap=ctn__free
            -lhwloc -lxxhash -lz -ldl -lm -fopenmp
        DEPENDS ${simulate_sources} ${simulate_headers} VERBATIM
        COMMENT "Building libexec/catena-simulate")
    add_custom_target(catena_simulate ALL DEPENDS "${simulate}")
    # The command looks for it there, relative to itself.
    catena_install(PROGRAMS "${simulate}" DESTINATION libexec)
endif()
