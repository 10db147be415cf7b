# SPDX-License-Identifier: Apache-2.0
#
# Finds what the library is made with and puts it into the interface target catena_deps.
# Sets catena_definitions (CTN_HAVE_*), CATENA_<NAME>_VERSION texts, and catena_private_libs, which
# catena.pc gives to static links.
find_package(PkgConfig QUIET)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)

add_library(catena_deps INTERFACE)
target_link_libraries(catena_deps INTERFACE OpenMP::OpenMP_C Threads::Threads m ${CMAKE_DL_LIBS})
set(catena_definitions)
set(catena_private_libs "-fopenmp -pthread -lm")

# A C library by header and name; pkg-config, where it exists, only tells where to look. On success
# CATENA_<id>_FOUND is true and CATENA_<id>_VERSION is its version, "unknown" without pkg-config.
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

macro(catena_require id header library pc)
    catena_find(${id} ${header} ${library} ${pc})
    if(NOT CATENA_${id}_FOUND)
        message(FATAL_ERROR "${header} or lib${library} not found: install it, or name its prefix "
            "in CMAKE_PREFIX_PATH")
    endif()
    target_link_libraries(catena_deps INTERFACE catena_${id})
    string(APPEND catena_private_libs " -l${library}")
endmacro()

macro(catena_want id header library pc)
    option(CATENA_${id} "Use ${library} when it is found" ON)
    if(CATENA_${id})
        catena_find(${id} ${header} ${library} ${pc})
    endif()
    if(CATENA_${id}_FOUND)
        target_link_libraries(catena_deps INTERFACE catena_${id})
        list(APPEND catena_definitions CTN_HAVE_${id}=1)
        string(APPEND catena_private_libs " -l${library}")
    endif()
endmacro()

# oneDNN: its CMake package, else header and library.
set(dnnl_minimum 3.2)
find_package(dnnl ${dnnl_minimum} CONFIG QUIET)
if(dnnl_FOUND)
    set(CATENA_DNNL_VERSION "${dnnl_VERSION}")
    target_link_libraries(catena_deps INTERFACE DNNL::dnnl)
    string(APPEND catena_private_libs " -ldnnl")
    if(DEFINED DNNL_CPU_THREADING_RUNTIME AND NOT DNNL_CPU_THREADING_RUNTIME STREQUAL "OMP")
        message(WARNING "this oneDNN runs on ${DNNL_CPU_THREADING_RUNTIME}, Catena on OpenMP: two "
            "thread pools in one process are slow; use a oneDNN built with OpenMP")
    endif()
else()
    catena_require(DNNL oneapi/dnnl/dnnl.h dnnl dnnl)
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
            "${dnnl_minimum} or newer is needed: name another prefix in CMAKE_PREFIX_PATH")
    endif()
endif()

catena_require(HWLOC hwloc.h hwloc hwloc)
catena_require(XXHASH xxhash.h xxhash libxxhash)
catena_want(ZLIB zlib.h z zlib)
catena_want(YYJSON yyjson.h yyjson yyjson)
catena_want(JPEG jpeglib.h jpeg libjpeg)
catena_want(SPNG spng.h spng spng)
catena_want(ARCHIVE archive.h archive libarchive)

# TensorBoard events: the library and its compiler of message descriptions.
find_program(CATENA_PROTOC protoc-c)
mark_as_advanced(CATENA_PROTOC)
if(CATENA_PROTOC)
    catena_want(PROTOBUFC protobuf-c/protobuf-c.h protobuf-c libprotobuf-c)
endif()

# Not linked by the library: HDF5 by a plug-in of its own, YAML by the command.
option(CATENA_HDF5 "Build the HDF5 plug-in when the library is found" ON)
if(CATENA_HDF5)
    catena_find(HDF5 hdf5.h hdf5 hdf5)
endif()
option(CATENA_YAML "Use libyaml in the command when it is found" ON)
if(CATENA_YAML)
    catena_find(YAML yaml.h yaml yaml-0.1)
endif()
