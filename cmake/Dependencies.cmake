# SPDX-License-Identifier: Apache-2.0
#
# Finds the libraries that Catena needs or can use, and adds them to the interface target
# catena_deps. Sets catena_definitions (CTN_HAVE_*), CATENA_<NAME>_VERSION, and
# catena_private_libs, which static links need: catena.pc and catena::catena_static pass them on.
find_package(PkgConfig QUIET)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)

add_library(catena_deps INTERFACE)
target_link_libraries(catena_deps INTERFACE OpenMP::OpenMP_C Threads::Threads m ${CMAKE_DL_LIBS})
set(catena_definitions)
set(catena_private_libs "-fopenmp -pthread -lm -ldl")

# Finds a C library by header and name. pkg-config, if installed, only gives hints where to look. On
# success CATENA_<id>_FOUND is true and CATENA_<id>_VERSION is its version, "unknown" without
# pkg-config.
macro(catena_find id header library pc)
    if(PkgConfig_FOUND)
        pkg_check_modules(PC_${id} QUIET ${pc})
    endif()
    find_path(CATENA_${id}_INCLUDE ${header} HINTS ${PC_${id}_INCLUDEDIR} ${PC_${id}_INCLUDE_DIRS})
    find_library(CATENA_${id}_LIBRARY ${library} HINTS ${PC_${id}_LIBDIR} ${PC_${id}_LIBRARY_DIRS})
    mark_as_advanced(CATENA_${id}_INCLUDE CATENA_${id}_LIBRARY)
    set(CATENA_${id}_FOUND FALSE)
    set(CATENA_${id}_VERSION "")
    if(CATENA_${id}_INCLUDE AND CATENA_${id}_LIBRARY)
        set(CATENA_${id}_FOUND TRUE)
        set(CATENA_${id}_VERSION "${PC_${id}_VERSION}")
        if(NOT CATENA_${id}_VERSION)
            set(CATENA_${id}_VERSION unknown)
        endif()
        add_library(catena_${id} UNKNOWN IMPORTED)
        set_target_properties(catena_${id} PROPERTIES
            IMPORTED_LOCATION "${CATENA_${id}_LIBRARY}"
            INTERFACE_INCLUDE_DIRECTORIES "${CATENA_${id}_INCLUDE}")
    endif()
endmacro()

macro(catena_require id header library pc package)
    catena_find(${id} ${header} ${library} ${pc})
    if(NOT CATENA_${id}_FOUND)
        message(FATAL_ERROR "${header} or lib${library} not found: install it (Debian: "
            "${package}), or add its prefix to CMAKE_PREFIX_PATH. ${ARGN}")
    endif()
    catena_use(${id} ${library})
endmacro()

macro(catena_use id library)
    target_link_libraries(catena_deps INTERFACE catena_${id})
    string(APPEND catena_private_libs " -l${library}")
endmacro()

# The option CATENA_<id>: AUTO uses a library if it is found, ON requires it, OFF leaves it out.
macro(catena_option id default what)
    set(CATENA_${id} ${default} CACHE STRING "${what}: ON, OFF, or AUTO, if it is found")
    set_property(CACHE CATENA_${id} PROPERTY STRINGS AUTO ON OFF)
endmacro()

# Adds a row to the table that catena_show_features prints: what was found, or what is lost without
# it and the Debian package that has it. It is an error if the option is ON and nothing was found.
set(catena_features)
function(catena_feature id name package lost)
    if(CATENA_${id}_FOUND)
        set(row "${name} ${CATENA_${id}_VERSION}" "found")
    elseif(CATENA_${id} MATCHES "^AUTO$|-NOTFOUND$")
        set(row "${name}" "missing: ${lost} (Debian: ${package})")
    elseif(NOT CATENA_${id})
        set(row "${name}" "off: ${lost}")
    else()
        message(FATAL_ERROR "CATENA_${id} is ${CATENA_${id}}, but ${name} was not found: install "
            "it (Debian: ${package}), add its prefix to CMAKE_PREFIX_PATH, or use "
            "-DCATENA_${id}=OFF")
    endif()
    set(catena_features "${catena_features};${row}" PARENT_SCOPE)
endfunction()

function(catena_show_features)
    message(STATUS "Optional libraries, and what is lost without them:")
    list(POP_FRONT catena_features)
    while(catena_features)
        list(POP_FRONT catena_features name state)
        string(LENGTH "${name}" width)
        math(EXPR width "24 - ${width}")
        if(width LESS 1)
            set(width 1)
        endif()
        string(REPEAT " " ${width} space)
        message(STATUS "  ${name}${space}${state}")
    endwhile()
    if(NOT CATENA_YYJSON_FOUND)
        message(WARNING "this build is without yyjson: `catena train` refuses to start, and no "
            "program can save weights or checkpoints. Install yyjson (Debian: libyyjson-dev).")
    endif()
endfunction()

# A library that libcatena links if it is found.
macro(catena_want id header library pc name package lost)
    catena_option(${id} AUTO "Use ${name}")
    if(CATENA_${id})
        catena_find(${id} ${header} ${library} ${pc})
    endif()
    if(CATENA_${id}_FOUND)
        catena_use(${id} ${library})
        list(APPEND catena_definitions CTN_HAVE_${id}=1)
    endif()
    catena_feature(${id} ${name} "${package}" "${lost}")
endmacro()

# oneDNN: use its CMake package, else the header and the library.
set(dnnl_minimum 3.2)
set(dnnl_help "If your system has an older one, see \"Older systems\" in docs/install.md.")
find_package(dnnl ${dnnl_minimum} CONFIG QUIET)
if(dnnl_FOUND)
    set(CATENA_DNNL_VERSION "${dnnl_VERSION}")
    target_link_libraries(catena_deps INTERFACE DNNL::dnnl)
    string(APPEND catena_private_libs " -ldnnl")
    if(DEFINED DNNL_CPU_THREADING_RUNTIME AND NOT DNNL_CPU_THREADING_RUNTIME STREQUAL "OMP")
        message(WARNING "this oneDNN uses the threads of ${DNNL_CPU_THREADING_RUNTIME}, but Catena "
            "uses OpenMP: two thread pools in one process are slow; use a oneDNN built with OpenMP")
    endif()
else()
    catena_require(DNNL oneapi/dnnl/dnnl.h dnnl dnnl libdnnl-dev "${dnnl_help}")
    set(CATENA_DNNL_VERSION "")
    foreach(part MAJOR MINOR PATCH)
        file(STRINGS "${CATENA_DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h" line
            REGEX "^#define DNNL_VERSION_${part} +[0-9]+")
        string(REGEX MATCH "[0-9]+" number "${line}")
        string(APPEND CATENA_DNNL_VERSION ".${number}")
    endforeach()
    string(SUBSTRING "${CATENA_DNNL_VERSION}" 1 -1 CATENA_DNNL_VERSION)
    if(CATENA_DNNL_VERSION VERSION_LESS dnnl_minimum)
        message(FATAL_ERROR "oneDNN ${CATENA_DNNL_VERSION} found in ${CATENA_DNNL_INCLUDE}, "
            "${dnnl_minimum} or newer is needed: install it, or add its prefix to "
            "CMAKE_PREFIX_PATH. ${dnnl_help}")
    endif()
endif()

# clang's libomp also has the functions of gcc's libgomp, so oneDNN uses it too, but only if no
# other part of the program has loaded libgomp before.
set(dnnl_target catena_DNNL)
if(dnnl_FOUND)
    set(dnnl_target DNNL::dnnl)
endif()
get_target_property(dnnl_file ${dnnl_target} LOCATION)
set(dnnl_needs "")
if(CMAKE_READELF)
    execute_process(COMMAND "${CMAKE_READELF}" -d "${dnnl_file}" OUTPUT_VARIABLE dnnl_needs
        ERROR_QUIET)
endif()
string(REGEX MATCH "NEEDED[^\n]*lib(gomp|omp|iomp5)[.]so" line "${dnnl_needs}")
set(dnnl_openmp "${CMAKE_MATCH_1}")
if(dnnl_openmp AND OpenMP_C_LIB_NAMES AND NOT dnnl_openmp IN_LIST OpenMP_C_LIB_NAMES)
    list(GET OpenMP_C_LIB_NAMES 0 name)
    message(WARNING "this compiler uses the OpenMP library lib${name}, but oneDNN uses "
        "lib${dnnl_openmp}. A program that loads lib${dnnl_openmp} first has two thread pools, "
        "which is slow: use gcc, or a oneDNN that was built with this compiler")
endif()

# Micro-kernels are an experimental part of oneDNN: both the functions and their parameters have
# changed between versions.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES ${dnnl_target})
check_c_source_compiles("
#include <oneapi/dnnl/dnnl_ukernel.h>
int main(void)
{
    dnnl_brgemm_t g;
    dnnl_pack_type_t pack;
    size_t scratch;
    return dnnl_brgemm_create(&g, 4, 4, 4, 1, 4, 4, 4, dnnl_f32, dnnl_f32, dnnl_f32) +
           dnnl_brgemm_set_add_C(g, 1) + dnnl_brgemm_finalize(g) + dnnl_brgemm_generate(g) +
           dnnl_brgemm_get_B_pack_type(g, &pack) + dnnl_brgemm_get_scratchpad_size(g, &scratch) +
           dnnl_brgemm_execute(g, 0, 0, 0, 0, 0) + dnnl_brgemm_destroy(g);
}" CATENA_BRGEMM_FOUND)
unset(CMAKE_REQUIRED_LIBRARIES)
if(CATENA_BRGEMM_FOUND)
    list(APPEND catena_definitions CTN_HAVE_BRGEMM=1)
endif()

catena_require(HWLOC hwloc.h hwloc hwloc libhwloc-dev)
catena_require(XXHASH xxhash.h xxhash libxxhash libxxhash-dev)
catena_want(ZLIB zlib.h z zlib zlib zlib1g-dev "no compressed files of MNIST and MATLAB")
catena_want(YYJSON yyjson.h yyjson yyjson yyjson libyyjson-dev
    "no weights or checkpoints can be written, so nothing can be trained")
catena_want(JPEG jpeglib.h jpeg libjpeg libjpeg-turbo libjpeg62-turbo-dev "no JPEG images")
catena_want(SPNG spng.h spng spng libspng libspng-dev "no PNG images")
catena_want(ARCHIVE archive.h archive libarchive libarchive libarchive-dev
    "tar shards need an index of `catena pack`")
catena_want(UTF8PROC utf8proc.h utf8proc libutf8proc utf8proc libutf8proc-dev "no tokenizers")

# TensorBoard events and ONNX need the library and the compiler for message descriptions.
catena_option(PROTOBUFC AUTO "Use protobuf-c and its compiler")
find_program(CATENA_PROTOC protoc-c)
mark_as_advanced(CATENA_PROTOC)
if(CATENA_PROTOBUFC AND CATENA_PROTOC)
    catena_find(PROTOBUFC protobuf-c/protobuf-c.h protobuf-c libprotobuf-c)
endif()
if(CATENA_PROTOBUFC_FOUND)
    catena_use(PROTOBUFC protobuf-c)
    list(APPEND catena_definitions CTN_HAVE_PROTOBUFC=1)
endif()
catena_feature(PROTOBUFC protobuf-c "libprotobuf-c-dev, protobuf-c-compiler"
    "no TensorBoard events, no ONNX models")

# A BLAS with a C interface, for what oneDNN computes with plain loops: most of it on AArch64,
# nothing on x86-64. One that uses OpenMP shares its threads with Catena and oneDNN.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(blas_default OFF)
else()
    set(blas_default AUTO)
endif()
catena_option(BLAS ${blas_default} "Use OpenBLAS or Arm Performance Libraries")
if(CATENA_BLAS)
    catena_find(BLAS cblas.h openblas openblas)
    set(blas OpenBLAS)
    if(NOT CATENA_BLAS_FOUND)
        unset(CATENA_BLAS_LIBRARY CACHE)
        catena_find(BLAS cblas.h armpl_lp64_mp armpl)
        set(blas "Arm Performance Libraries")
    endif()
    if(CATENA_BLAS_FOUND)
        target_link_libraries(catena_deps INTERFACE catena_BLAS)
        list(APPEND catena_definitions CTN_HAVE_BLAS=1)
        set(CATENA_BLAS_NAME "${blas} ${CATENA_BLAS_VERSION}")
        get_filename_component(name "${CATENA_BLAS_LIBRARY}" NAME_WE)
        string(REGEX REPLACE "^lib" " -l" name "${name}")
        string(APPEND catena_private_libs "${name}")
    endif()
endif()
if(CATENA_BLAS OR NOT blas_default STREQUAL "OFF")
    catena_feature(BLAS OpenBLAS libopenblas-openmp-dev "most convolutions run with slow loops")
endif()

# The library links neither of these: HDF5 is used by a plug-in, YAML by the command.
catena_option(HDF5 AUTO "Build the HDF5 plug-in")
if(CATENA_HDF5)
    catena_find(HDF5 hdf5.h hdf5 hdf5)
endif()
catena_feature(HDF5 HDF5 libhdf5-dev "no HDF5 arrays")
catena_option(YAML AUTO "Use libyaml in the command")
if(CATENA_YAML)
    catena_find(YAML yaml.h yaml yaml-0.1)
endif()
catena_feature(YAML libyaml libyaml-dev "no configuration files, no --resume")

# Finds one MPI of each kind by pkg-config, else by asking a compiler wrapper. On success sets
# CATENA_<id>_FOUND, _INCLUDES, _LIBRARY (only for tests: plug-ins do not link it) and _RUN, the
# launcher, which may be missing.
catena_option(MPI AUTO "Build a plug-in for Open MPI, MPICH or both")
function(catena_find_mpi id pc library sign)
    set(includes)
    set(folders)
    if(PkgConfig_FOUND)
        pkg_check_modules(PC_${id} QUIET ${pc})
        set(includes ${PC_${id}_INCLUDE_DIRS})
        set(folders ${PC_${id}_LIBRARY_DIRS})
    endif()
    string(TOLOWER ${id} name)
    find_program(CATENA_${id}_CC NAMES mpicc.${name} mpicc mpicc.mpich mpicc.openmpi)
    if(NOT includes AND CATENA_${id}_CC)
        execute_process(COMMAND ${CATENA_${id}_CC} -show OUTPUT_VARIABLE line ERROR_QUIET)
        separate_arguments(words UNIX_COMMAND "${line}")
        foreach(word IN LISTS words)
            if(word MATCHES "^-I(.+)")
                list(APPEND includes ${CMAKE_MATCH_1})
            elseif(word MATCHES "^-L(.+)")
                list(APPEND folders ${CMAKE_MATCH_1})
            endif()
        endforeach()
    endif()
    find_path(CATENA_${id}_INCLUDE mpi.h HINTS ${includes} NO_DEFAULT_PATH)
    find_library(CATENA_${id}_LIBRARY NAMES ${library} mpi HINTS ${folders})
    get_filename_component(bin "${CATENA_${id}_CC}" DIRECTORY)
    find_program(CATENA_${id}_RUN NAMES mpirun.${name} mpirun HINTS ${bin})
    mark_as_advanced(CATENA_${id}_CC CATENA_${id}_INCLUDE CATENA_${id}_LIBRARY CATENA_${id}_RUN)
    set(found FALSE)
    if(CATENA_${id}_INCLUDE AND CATENA_${id}_LIBRARY)
        file(STRINGS "${CATENA_${id}_INCLUDE}/mpi.h" lines REGEX "define +${sign}" LIMIT_COUNT 1)
        if(lines)
            set(found TRUE)
        endif()
    endif()
    set(CATENA_${id}_FOUND ${found} PARENT_SCOPE)
    set(CATENA_${id}_INCLUDES ${CATENA_${id}_INCLUDE} ${includes} PARENT_SCOPE)
endfunction()
foreach(id OPENMPI MPICH)
    set(CATENA_${id}_FOUND FALSE)
endforeach()
if(CATENA_MPI)
    catena_find_mpi(OPENMPI ompi-c mpi OPEN_MPI)
    catena_find_mpi(MPICH mpich mpich "(MPICH|I_MPI)_VERSION")
endif()
set(CATENA_MPI_FOUND FALSE)
set(CATENA_MPI_VERSION)
foreach(id OPENMPI MPICH)
    if(CATENA_${id}_FOUND)
        set(CATENA_MPI_FOUND TRUE)
        string(TOLOWER ${id} name)
        string(APPEND CATENA_MPI_VERSION " ${name}")
    endif()
endforeach()
string(STRIP "${CATENA_MPI_VERSION}" CATENA_MPI_VERSION)
catena_feature(MPI MPI "libopenmpi-dev or libmpich-dev"
    "one rank, unless `catena mpi-setup` builds a plug-in later")
